"""Every block of commands in the pages is run here, or says above it what runs or hinders it."""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.build_site import navigation

ROOT = Path(__file__).parent.parent
FENCE = re.compile(
    r"^(?P<above>[^\n]*)\n(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
MARK = re.compile(r" *<!-- (?:needs (?P<need>[^>]+)|run by (?P<runner>\S+)) -->")
# What keeps a block from being run here; several are joined by ", and ".
NEEDS = {
    "a cluster", "a published release", "a registry", "Docker", "hours", "minutes",
    "published traces", "root",
}  # fmt: skip
COMMAND = re.compile(
    r"^(\$ )?(sudo )?(\S*bin/)?(greensched|kubectl|helm|make|docker) [a-z]", re.MULTILINE
)


VERB = re.compile(r"[a-z][a-z0-9-]*")


class Block(NamedTuple):
    """A fenced block of a page, with the line above it."""

    page: str
    above: str
    language: str
    body: str

    def is_ours(self) -> bool:
        """Return whether all its commands are of our own program, which is safe to run."""
        is_shown = self.language == "console"
        lines = [line for line in self.body.splitlines() if line.startswith("$ ") or not is_shown]
        return all(line.removeprefix("$ ").startswith("greensched ") for line in lines)

    def named(self) -> str:
        """Return the page and the first command."""
        return f"{self.page}: {self.body.splitlines()[0]}"


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [Block(page, match["above"], match["language"], match["body"]) for match in found]


BLOCKS = [block for page in navigation() for block in blocks(page)]
COMMANDS = [block for block in BLOCKS if block.language in {"sh", "bash", "shell", "console"}]
UNMARKED = [block for block in COMMANDS if not MARK.fullmatch(block.above)]
RUN_HERE = [block for block in UNMARKED if block.is_ours()]
RUN_ELSEWHERE = [block for block in COMMANDS if "<!-- run by " in block.above]


def run(script: str) -> str:
    """Return what bash prints, in the repository, with our commands on the PATH and no cluster."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "KUBECONFIG": os.devnull}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_blocks_that_hold_commands_say_so() -> None:
    plain = [block.named() for block in BLOCKS if not block.language and COMMAND.search(block.body)]
    assert plain == []


def test_every_block_of_commands_is_run_here_or_marked() -> None:
    assert [block.named() for block in UNMARKED if block not in RUN_HERE] == []


def unknown_needs(above: str) -> list[str]:
    """Return the needs in a block's mark that are not on the list."""
    mark = MARK.fullmatch(above)
    return [] if not mark or not mark["need"] else sorted({*mark["need"].split(", and ")} - NEEDS)


def test_what_a_block_needs_is_on_the_list() -> None:
    unknown = {block.named(): unknown_needs(block.above) for block in COMMANDS}
    refused = {name: needs for name, needs in unknown.items() if needs}
    assert refused == {}, (
        f"a block of commands may need only {', '.join(sorted(NEEDS))}; let a test run the others"
    )


@pytest.mark.parametrize(
    ("above", "unknown"),
    [
        pytest.param("<!-- needs a cluster -->", [], id="one"),
        pytest.param("   <!-- needs root, and a registry -->", [], id="two"),
        pytest.param("<!-- needs patience -->", ["patience"], id="another"),
        pytest.param("<!-- needs root, and luck -->", ["luck"], id="one-of-two"),
        pytest.param("<!-- needs root and Docker -->", ["root and Docker"], id="joined-otherwise"),
        pytest.param("<!-- run by .ci/run -->", [], id="run"),
    ],
)
def test_a_need_that_is_not_on_the_list_is_refused(above: str, unknown: list[str]) -> None:
    assert unknown_needs(above) == unknown


def commands(body: str) -> Iterator[list[str]]:
    """Return the words of each command of a block, without `sudo` and comments."""
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            yield words[1:] if words[0] == "sudo" else words


def verbs(command: list[str]) -> list[str]:
    """Return the words that say what a program shall do: those before options, paths and names."""
    end = next((at for at, word in enumerate(command) if at and not VERB.fullmatch(word)), None)
    return command[1:end]


def options(command: list[str]) -> list[str]:
    """Return the options of a command, those within `ARGS=` too."""
    parts = [part for word in command for part in re.split(r"[= ]", word)]
    return [part for part in parts if part.startswith("-")]


def files(command: list[str]) -> list[str]:
    """Return the names of the repository's files that a command is given."""
    return [Path(word).name for word in command[1:] if (ROOT / word).is_file()]


def runs(runner: Path, command: list[str]) -> bool:
    """Return whether a script or test holds a command's verbs, files and options.

    A script holds the program and its verbs in one phrase. A test holds them as strings, for it
    may start what the program starts.
    """
    text = runner.read_text(encoding="utf-8")
    if runner.suffix == ".py":
        words, text = verbs(command), strings(text)
    else:
        words = [" ".join([Path(command[0]).name, *verbs(command)])]
        text = re.sub(r"(^|\s)#.*", "", text)
    return all(
        re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)
        for word in [*words, *files(command), *options(command)]
    )


def strings(source: str) -> str:
    """Return the strings of Python code, docstrings apart, a line each."""
    tree = ast.parse(source)
    passed = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return "\n".join(str(node.value) for node in found if node not in passed)


@pytest.mark.parametrize("block", RUN_ELSEWHERE, ids=Block.named)
def test_what_is_said_to_run_a_block_holds_each_of_its_commands(block: Block) -> None:
    mark = MARK.fullmatch(block.above)
    assert mark
    runner = ROOT / mark["runner"]
    assert runner.is_file()
    assert [each for each in commands(block.body) if not runs(runner, each)] == []


@pytest.mark.parametrize(
    ("body", "is_run"),
    [
        pytest.param("sudo make e2e-short   # a comment", True, id="as-it-stands"),
        pytest.param("make test", True, id="with-more-arguments"),
        pytest.param("make e2e", False, id="another-target-begins-so"),
        pytest.param("make help", False, id="only-in-a-comment"),
        pytest.param("make test ARGS=--exitfirst", False, id="another-option"),
    ],
)
def test_a_script_runs_what_it_holds(tmp_path: Path, body: str, is_run: bool) -> None:
    script = tmp_path / "run"
    script.write_text("make e2e-short\nmake test ARGS=--quiet # not make help\n")
    (command,) = commands(body)
    assert runs(script, command) == is_run


@pytest.mark.parametrize(
    ("body", "is_run"),
    [
        pytest.param(".venv/bin/greensched cluster up --nodes 10", True, id="as-it-stands"),
        pytest.param("greensched cluster down", False, id="only-in-a-docstring"),
        pytest.param("greensched cluster up --real-nodes 2", False, id="another-option"),
        pytest.param("greensched cluster up README.md", False, id="another-file"),
    ],
)
def test_a_test_runs_what_its_strings_hold(tmp_path: Path, body: str, is_run: bool) -> None:
    test = tmp_path / "test_it.py"
    test.write_text('"""Brings it down."""\ngreensched("cluster", "up", "--nodes", "2")\n')
    (command,) = commands(body)
    assert runs(test, command) == is_run


@pytest.mark.parametrize("block", RUN_HERE, ids=Block.named)
def test_commands_do_what_the_page_shows(block: Block) -> None:
    (ROOT / "build").mkdir(exist_ok=True)
    if block.language != "console":
        run(block.body)
        return
    for shown in block.body.removeprefix("$ ").split("\n$ "):
        command, _, output = shown.partition("\n")
        assert run(command).strip() == output.strip()
