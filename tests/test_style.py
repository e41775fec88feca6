"""The house style where it can be measured: sizes, names, reasons beside exceptions, fakes."""

import ast
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.house_sizes import Size, sizes_of
from tests.repository_files import ROOT, files_of_the_repository

FILES = files_of_the_repository()
MODULES = [path for path in FILES if path.suffix == ".py"]
SOURCES = [path for path in MODULES if any(p.startswith("greensched_") for p in path.parts)]
# The rest of the tree talks to processes, terminals and servers, where real time passes.
_TIMED = {"core", "policies", "extender"}
CLOCKED = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in _TIMED]

LONGEST_FILE = 400
LONGEST_TRAINING_SCRIPT = 500
LONGEST_FUNCTION = 40
MOST_PARAMETERS = 7  # the options of the command line's verbs apart
MOST_FILES = 30  # of Python in a folder, so that its names are read at a glance
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}
READS_THE_CLOCK = {
    *(("time", name) for name in ("time", "time_ns", "monotonic", "monotonic_ns", "sleep")),
    *(("datetime", name) for name in ("now", "utcnow", "today")),
    ("date", "today"),
}
KEEPS_TIME = {
    "clock.py",
    "code_cache.py",  # when machine code was last used
    "kubernetes_api.py",  # an adapter: how long a token file may be kept
}
WORDED = {".py", ".md", ".yaml", ".tpl", ".txt", ".json", ".sh", ".toml"}
# Files that must name retired words, to say what replaced them or to look for them.
NAMES_RETIRED_WORDS = {"CHANGELOG.md", "docs/glossary.md", "tests/test_style.py"}
STILL_USED = {
    "hold-until": (  # release 0.1.0 has this annotation and column; upgrades from it read both
        "core/greensched_core/labels.py",
        "deploy/helm/greensched/templates/operator/_conditions.tpl",
        "operator/greensched_operator/ledger/migrations.py",
        "tests/deploy/test_uninstalling.py",
        "tests/e2e/test_upgraded_with_held_work.py",
        "tests/operator/ledger/test_ledger_store.py",
        "tests/operator/objects/test_what_010_held.py",
    ),
    "release-all": (  # release 0.1.0 has these names; an upgrade from it needs them
        "deploy/helm/greensched/templates/operator/emergency-release.yaml",
        "tests/deploy/test_uninstalling.py",
    ),
}
VERBS = "what a command does, named as users type it, and the function that it calls"
COMPILED = "one step: the library's entry, the call that reaches it, what both compute"
SHARED_NAMES = {
    **dict.fromkeys(("check", "compare", "down", "replay", "report"), VERBS),
    **dict.fromkeys(("simulate", "status", "up"), VERBS),
    **dict.fromkeys(("choose_slots", "plan_starts", "see_nodes", "see_slots"), COMPILED),
    **dict.fromkeys(("find_rows", "hash_names", "rate_candidates"), COMPILED),
    **dict.fromkeys(("spread_scores", "write_scores"), COMPILED),
    "main": "where a program begins",
    "question": "what each meter asks Prometheus",
    "read": "how each provider reads its answer",
}
NO_PUBLIC_NAME = re.compile(r"(TypeVar|ParamSpec|Annotated\[.*typer)")
EXCEPTION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:|nosec)(?P<rest>.*)$")
RULES = re.compile(r"^:?\s*(\[[\w, -]+\]|[A-Z]+\d+(,\s*[A-Z]+\d+)*|no cover|no branch)?")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(path: Path) -> str:
    """Return a path as it is written from the root."""
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    too_long = {
        named(path): lines
        for path, lines in lengths.items()
        if lines > (LONGEST_TRAINING_SCRIPT if "train" in path.parts else LONGEST_FILE)
    }
    assert too_long == {}


def test_no_folder_holds_more_than_30_python_files() -> None:
    counts = Counter(named(path.parent) for path in MODULES)
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "__init__.py"], ids=named)
def test_every_package_says_what_it_is_what_it_imports_and_where_to_begin(path: Path) -> None:
    words = (ast.get_docstring(tree(path)) or "").lower()
    assert "begin with" in words
    assert "import" in words or "from the bottom up" in words


@pytest.fixture(scope="module")
def sizes() -> list[Size]:
    """The sizes of all functions of the product."""
    return sizes_of(SOURCES)


def test_no_function_is_longer_than_40_lines_with_its_signature() -> None:
    lengths = {each.name: each.lines for each in sizes_of(MODULES)}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_no_function_of_the_product_takes_more_than_7_parameters(sizes: list[Size]) -> None:
    counts = {each.name: each.parameters for each in sizes}
    assert {name: count for name, count in counts.items() if count > MOST_PARAMETERS} == {}


def test_most_functions_are_short(sizes: list[Size]) -> None:
    lengths = [each.lines for each in sizes]
    assert statistics.median(lengths) <= 10
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_every_module_is_named_after_something_of_the_domain() -> None:
    vague = [
        named(path)
        for path in MODULES
        if NAMES_THAT_SAY_NOTHING & set(re.split(r"[_/.]", named(path)))
    ]
    assert vague == []


def test_no_public_name_means_two_things() -> None:
    """Of functions and types all; of constants those that other modules use."""
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        is_reproduction = path.parent.name == "reproductions"  # in the words of its paper
        for name in set() if is_reproduction else public_names(tree(path)):
            if not name.isupper() or (module_of(path), name) in USED_ELSEWHERE:
                homes.setdefault(name, []).append(named(path))
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in SHARED_NAMES} == {}
    assert set(SHARED_NAMES) <= set(shared), "no longer shared: take it out of SHARED_NAMES"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        pytest.param("def late_share(): ...", {"late_share"}, id="function"),
        pytest.param("SLOT_S = 900.0", {"SLOT_S"}, id="constant"),
        pytest.param("SLOT_S: float = 900.0", {"SLOT_S"}, id="constant-with-a-type"),
        pytest.param("Words = tuple[str, ...]", {"Words"}, id="alias"),
        pytest.param("RESUME_S = 5", {"RESUME_S"}, id="one-position"),
        pytest.param("CPU, GPU = 0, 1", set(), id="positions"),
        pytest.param("CPU, GPU = range(2)", set(), id="numbered-positions"),
        pytest.param("Value = TypeVar('Value')", set(), id="type-variable"),
        pytest.param("Out = Annotated[Path, typer.Option()]", set(), id="option-of-a-command"),
        pytest.param("log = structlog.get_logger()", set(), id="logger"),
        pytest.param("_found = 1", set(), id="private"),
    ],
)
def test_what_counts_as_a_public_name(code: str, names: set[str]) -> None:
    assert public_names(ast.parse(code)) == names


def public_names(module: ast.Module) -> set[str]:
    """Return the functions, types and constants of a module that others may use.

    Without positions in an array (`CPU, GPU = range(2)`), which are used with that array, without
    options, which are named as users type them, and without type variables and loggers.
    """
    found: set[str] = set()
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if not NO_PUBLIC_NAME.match(ast.unparse(value)) and not name.islower():
                    found.add(name)
    return {name for name in found if not name.startswith("_")}


def module_of(path: Path) -> str:
    """Return a module's name, as it is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts[1:])


def used_elsewhere() -> set[tuple[str, str]]:
    """Return each module and name of ours that a module of the product imports."""
    return {
        (node.module or "", alias.name)
        for path in SOURCES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


USED_ELSEWHERE = used_elsewhere()


def retired_words() -> set[str]:
    """Return what stands in code style in the glossary's last column; the rest has other uses."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    columns = (line.strip("|").split("|")[-1] for line in page.splitlines() if line[:2] == "| ")
    return {word for column in columns for word in re.findall(r"`([\w -]+)`", column)}


def words_in(text: str, words: set[str]) -> set[str]:
    """Return which words a text has, as a word or as a part of a name, however it is spelt.

    `latest-start` is also found as latest_start, LATEST_START, latestStart and LatestStart. Only
    a word with a space is found with one: "release all" is English, `release-all` was a name.
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    joined = re.sub(r"\s+", " ", split.lower().replace("-", "_"))
    return {word for word in words if re.search(_spellings(word), joined)}


def _spellings(word: str) -> str:
    inner = "".join("[ _]" if each == " " else "_" if each in "-_" else each for each in word)
    return rf"(?<![a-z0-9]){inner}(?![a-z0-9])"


def test_no_word_that_the_glossary_retires_comes_back() -> None:
    """Not in code, tests, pages, chart or scripts."""
    words = retired_words()
    assert {"wish", "release-all", "emergency switch"} <= words
    texts = {
        named(path): path.read_text(encoding="utf-8") for path in FILES if path.suffix in WORDED
    }
    found = {
        (name, word)
        for name, text in texts.items()
        if name not in NAMES_RETIRED_WORDS
        for word in words_in(text, words)
    }
    assert found == {(name, word) for word, names in STILL_USED.items() for name in names}


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        pytest.param("class GridKeeper:", True, id="part-of-a-class"),
        pytest.param("the_keeper = 1", True, id="part-of-a-name"),
        pytest.param("The emergency\n    switch is on.", True, id="over-two-lines"),
        pytest.param("test_the_emergency_switch", True, id="two-words-in-a-name"),
        pytest.param("greensched.io/hold-until", True, id="with-a-hyphen"),
        pytest.param("hold_until: float", True, id="in-snake-case"),
        pytest.param("labels.HOLD_UNTIL", True, id="in-capitals"),
        pytest.param("holdUntil: 1", True, id="in-camel-case"),
        pytest.param("GPUHoldUntil", True, id="after-an-abbreviation"),
        pytest.param("caps hold until noon", False, id="plain-english"),
        pytest.param("bookkeepers", False, id="within-a-word"),
        pytest.param("an emergency, switch", False, id="two-words-apart"),
    ],
)
def test_a_retired_word_is_found_however_it_is_written(text: str, is_found: bool) -> None:
    assert bool(words_in(text, {"keeper", "emergency switch", "hold-until"})) == is_found


def test_every_exception_from_a_rule_carries_its_reason() -> None:
    bare = []
    for path in MODULES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            found = EXCEPTION.search(line)
            reason = RULES.sub("", found["rest"]).strip(" #-:") if found else ""
            if found and not reason and path != Path(__file__):
                bare.append(f"{named(path)}:{number}")
    assert bare == []


def test_every_exception_in_the_project_file_carries_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    rules = re.search(r"^ignore = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    files = re.search(r"^\[tool.ruff.lint.per-file-ignores\]\n(.*?)\n\n", text, re.M | re.DOTALL)
    types = re.findall(r"^ignore_\w+ = .*$", text, re.MULTILINE)
    assert rules and files and types
    exceptions = [*rules[1].splitlines(), *files[1].splitlines(), *types]
    assert [line for line in exceptions if "#" not in line] == []


def test_no_comment_is_a_banner() -> None:
    banner = re.compile(r"^\s*#\s*([-=#*~_])\1{3,}", re.MULTILINE)
    assert [named(p) for p in MODULES if banner.search(p.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("path", CLOCKED, ids=named)
def test_components_are_passed_their_clock(path: Path) -> None:
    if path.name in KEEPS_TIME:
        return
    reads = [
        f"{named(path)}:{node.lineno}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr) in READS_THE_CLOCK
    ]
    assert reads == []


def test_no_test_replaces_a_name_of_ours() -> None:
    replaced = []
    for path in (ROOT / "tests").rglob("*.py"):
        ours = names_imported_from_us(tree(path))
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and replaces(node, ours):
                replaced.append(f"{named(path)}:{node.lineno}")
    assert replaced == [], "pass a fake in instead: an edge leaked inward"


def names_imported_from_us(module: ast.Module) -> set[str]:
    """Return the names that a module imports from a package of ours."""
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("greensched_"):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            ours = (alias for alias in node.names if alias.name.startswith("greensched_"))
            names |= {alias.asname or alias.name.split(".")[0] for alias in ours}
    return names


def replaces(call: ast.Call, ours: set[str]) -> bool:
    """Tell whether a call is patch(…) or setattr(…) on something of ours."""
    name = ast.unparse(call.func)
    if not call.args or not re.search(r"(^|\.)(patch(\.object)?|setattr)$", name):
        return False
    target = call.args[0]
    if isinstance(target, ast.Constant):
        return str(target.value).startswith("greensched_")
    root = ast.unparse(target).split(".")[0]
    return root in ours


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (r"/apis/\{(labels\.)?GROUP\}/\{(labels\.)?VERSION\}", "core/greensched_core/labels.py"),
        # As the name of policies; the extra `train` has the package of that name.
        (r"(?<!_SIMULATOR, )\"onnx\"", "policies/greensched_policies/learned/model_fields.py"),
    ],
)
def test_what_several_components_read_is_written_once(written: str, place: str) -> None:
    found = [path for path in SOURCES if re.search(written, path.read_text(encoding="utf-8"))]
    assert list(map(named, found)) == [place], "take it from there"
