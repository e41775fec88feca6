"""Every block of commands in the pages is run here, or says above it what runs or hinders it."""

import os
import re
import subprocess
import sys
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
COMMAND = re.compile(
    r"^(\$ )?(sudo )?(\S*bin/)?(greensched|kubectl|helm|make|docker) [a-z]", re.MULTILINE
)


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


def test_what_is_said_to_run_a_block_is_there() -> None:
    marks = [MARK.fullmatch(block.above) for block in COMMANDS]
    runners = {mark["runner"] for mark in marks if mark and mark["runner"]}
    assert {runner for runner in runners if not (ROOT / runner).is_file()} == set()


@pytest.mark.parametrize("block", RUN_HERE, ids=Block.named)
def test_commands_do_what_the_page_shows(block: Block) -> None:
    (ROOT / "build").mkdir(exist_ok=True)
    if block.language != "console":
        run(block.body)
        return
    for shown in block.body.removeprefix("$ ").split("\n$ "):
        command, _, output = shown.partition("\n")
        assert run(command).strip() == output.strip()
