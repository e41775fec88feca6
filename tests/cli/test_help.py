import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import typer

from greensched_cli.__main__ import app
from greensched_cli.installation import install_command
from greensched_cli.output import AsOutput, Output
from greensched_simulator.policy import PRESETS

Verb = Callable[..., Any]
# What takes long to import, and no --help needs.
HEAVY = {
    "numpy", "onnxruntime", "plotly", "kubernetes", "fastapi", "cryptography", "httpx", "aiohttp",
    "numba", "scipy", "pyarrow", "matplotlib", "sqlalchemy", "psycopg", "urllib.request",
}  # fmt: skip
SHOWS_HELP = """
import sys
from typer.testing import CliRunner
from greensched_cli.__main__ import app
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(result.output)
print("imported", *sys.modules)
"""
# Of the last two one prints only JSON, and one how far it is.
SHOW_NOTHING = {"cluster up", "cluster down", "scenario schema", "train"}


def test_the_version_is_that_of_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "greensched_cli", "--version"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == f"greensched {version('greensched')}\n"


def test_without_what_the_command_line_needs_it_says_how_to_get_that() -> None:
    code = "import sys; sys.modules['typer'] = None; from greensched_cli.entry import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"greensched: typer is missing: {install_command('cli')}\n"


def test_the_shell_completes_verbs() -> None:
    program = Path(sys.executable).with_name("greensched")
    asked = {"_GREENSCHED_COMPLETE": "complete_bash", "COMP_WORDS": "greensched sta",
             "COMP_CWORD": "1", "PATH": os.environ["PATH"]}  # fmt: skip
    done = subprocess.run([program], env=asked, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["status"]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        pytest.param(["sta"], ["status"], id="a-verb"),
        pytest.param(["status", "--name"], ["--namespace"], id="an-option"),
        pytest.param(["status", "-o", ""], ["table", "json", "yaml"], id="a-value"),
        pytest.param(["cluster", "u"], ["up"], id="a-verb-of-a-group"),
        pytest.param(["no-such-verb", "x"], [], id="nothing"),
    ],
)
def test_kubectl_completes_words_too(words: list[str], completed: list[str]) -> None:
    """`kubectl greensched sta<TAB>` runs `kubectl_complete-greensched sta`."""
    program = Path(sys.executable).with_name("kubectl_complete-greensched")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=True)
    *lines, directive = done.stdout.splitlines()
    assert [line.partition("\t")[0] for line in lines] == completed
    assert (directive, done.stderr) == (":4", "")


def completed_by_kubectl(*words: str) -> str:
    """Return what `kubectl greensched …<TAB>` asks for."""
    program = Path(sys.executable).with_name("kubectl_complete-greensched")
    done = subprocess.run(
        [program, *words, ""], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.removesuffix(":4\n")


def completed_by_fish(*words: str) -> str:
    """Return what `greensched …<TAB>` asks for in the shell fish."""
    program = Path(sys.executable).with_name("greensched")
    asked = {"_GREENSCHED_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
             "_TYPER_COMPLETE_ARGS": f"{' '.join(['greensched', *words])} "}  # fmt: skip
    done = subprocess.run(
        [program], env=os.environ | asked, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("completed", [completed_by_kubectl, completed_by_fish])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "status\tShow what waits for cleaner or cheaper power, when it starts, and what is "
             "wrong."),
        (("cluster",), "up\tStart etcd, kube-apiserver, kube-controller-manager, kube-scheduler "
                       "and kwok, and return."),
    ],
    ids=["verbs", "verbs-of-a-group"],
)  # fmt: skip
def test_a_completed_verb_has_its_whole_sentence_on_its_line(
    completed: Callable[..., str], words: tuple[str, ...], told: str
) -> None:
    lines = completed(*words).splitlines()
    assert told in lines
    assert [line for line in lines if "\t" not in line or line.endswith("...")] == []


def test_it_is_a_plugin_of_kubectl() -> None:
    """`kubectl greensched status` runs whatever is called kubectl-greensched on the PATH."""
    program = Path(sys.executable).with_name("kubectl-greensched")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"greensched {version('greensched')}\n"


def verbs_of(program: typer.Typer, group: str = "") -> Iterator[tuple[str, Verb]]:
    """Yield the full name of each verb and its function."""
    for each in program.registered_commands:
        assert each.callback is not None
        yield f"{group} {each.name or each.callback.__name__}".strip(), each.callback
    for inner in program.registered_groups:
        assert inner.typer_instance is not None
        yield from verbs_of(inner.typer_instance, str(inner.name))


VERBS = dict(verbs_of(app))


@pytest.mark.parametrize("verb", ["", "cluster", "policy", "scenario", *VERBS])
def test_help_answers_without_the_heavy_libraries(verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_HELP, *verb.split(), "--help"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    shown, imported = done.stdout.rsplit("imported", 1)
    assert "Usage" in shown
    assert HEAVY & set(imported.split()) == set()


SHOWS_ALL_HELP = """
import sys
from typer.testing import CliRunner
from greensched_cli.__main__ import app
for verb in sys.argv[1:]:
    print(CliRunner().invoke(app, [*verb.split(), "--help"]).output)
"""
REPEATED = re.compile(r"(?<=[]}A-Z])\.\.\.")  # such as `[names]...`: it may be given again


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("verbs", [["--help"], ["cluster", "policy", "scenario", *VERBS]])
def test_no_line_of_help_is_cut_off_on_a_narrow_terminal(columns: str, verbs: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_ALL_HELP, *verbs],
        env=os.environ | {"COLUMNS": columns}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("Usage: ") == len(verbs)
    lines = [REPEATED.sub("", line).rstrip(" │") for line in done.stdout.splitlines()]
    assert [line for line in lines if line.endswith(("...", "…"))] == []


OPTION = re.compile(r"(?<=\s)--[a-z-]+")


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize("verb", ["status", "replay", "cluster up"])
def test_no_option_is_cut_off_on_a_narrow_terminal(verb: str, columns: str) -> None:
    def options(columns: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-m", "greensched_cli", *verb.split(), "--help"],
            env=os.environ | {"COLUMNS": columns}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert max(map(len, done.stdout.splitlines())) <= int(columns)
        return set(OPTION.findall(done.stdout))

    assert "--help" in options("200") <= options(columns)


@pytest.mark.parametrize(("name", "verb"), VERBS.items())
def test_output_is_the_format_on_each_verb_that_shows_something(name: str, verb: Verb) -> None:
    parameters = signature(verb).parameters
    if name in SHOW_NOTHING:
        assert "output" not in parameters
        return
    assert parameters["output"].annotation == AsOutput
    assert parameters["output"].default == Output.TABLE


def test_help_lists_every_preset() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "greensched_cli", "simulate", "--help"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert [name for name in PRESETS if name not in done.stdout] == []
