"""The house style where it can be measured: sizes, names, reasons beside exceptions, fakes."""

import ast
import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.house_sizes import sizes_of

ROOT = Path(__file__).parent.parent
SKIPPED = {".venv", "build", "dist", ".git"}
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if not SKIPPED & set(path.relative_to(ROOT).parts)
)
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
    "kubernetes_api.py",  # an adapter: how long a token file may be kept
}
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


def test_no_function_is_longer_than_40_lines_with_its_signature() -> None:
    lengths = {each.name: each.lines for each in sizes_of(MODULES)}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_no_function_of_the_product_takes_more_than_7_parameters() -> None:
    counts = {each.name: each.parameters for each in sizes_of(SOURCES)}
    assert {name: count for name, count in counts.items() if count > MOST_PARAMETERS} == {}


def test_most_functions_are_short() -> None:
    lengths = [each.lines for each in sizes_of(SOURCES)]
    assert statistics.median(lengths) <= 10
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_every_module_is_named_after_something_of_the_domain() -> None:
    vague = [
        named(path)
        for path in MODULES
        if NAMES_THAT_SAY_NOTHING & set(re.split(r"[_/.]", named(path)))
    ]
    assert vague == []


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(named(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_name_is_made_of_a_word_that_the_glossary_retires() -> None:
    """Only what stands in code style in the last column: the others have uses of their own."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    columns = (line.strip("|").split("|")[-1] for line in page.splitlines() if line[:2] == "| ")
    retired = {word for column in columns for word in re.findall(r"`(\w+)`", column)}
    assert retired, "the glossary retires no name"
    found = {
        f"{named(path)}: {name}"
        for path in SOURCES
        for name in re.findall(r"\b[A-Za-z]\w*", path.read_text(encoding="utf-8"))
        if retired & set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))
    }
    assert found == set()


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
