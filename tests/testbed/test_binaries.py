import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from greensched_testbed.binaries import (
    CONTROL_PLANE,
    KUEUE,
    PROMETHEUS,
    RELEASE,
    Recipe,
    announcement,
    built,
    share_text,
)
from greensched_testbed.errors import BuildFailed

HELLO = 'package main\n\nfunc main() { println("hello") }\n'


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    module = tmp_path / "module"
    (module / "cmd" / "hello").mkdir(parents=True)
    (module / "go.mod").write_text(
        "module example.test/hello\n\ngo 1.26\n\ntool example.test/hello/cmd/hello\n"
    )
    (module / "go.sum").write_text("")
    (module / "cmd" / "hello" / "main.go").write_text(HELLO)
    return Recipe("greeting", module, ("hi",), 0.1, ("-ldflags", "-s -w"), {"hello": "hi"})


def test_a_program_is_built_once_under_its_own_name(tmp_path: Path, recipe: Recipe) -> None:
    folder = built(recipe, tmp_path / "cache")
    said = subprocess.run([folder / "hi"], capture_output=True, text=True, check=True)
    assert said.stderr == "hello\n"
    before = (folder / "hi").stat().st_mtime_ns
    assert built(recipe, tmp_path / "cache") == folder
    assert (folder / "hi").stat().st_mtime_ns == before


def test_progress_is_reported(
    tmp_path: Path, recipe: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    built(recipe, tmp_path / "cache")
    told = capsys.readouterr().err
    assert "greeting: building hi from source, once: about a minute on an idle machine" in told
    assert "greeting: built in" in told
    assert announcement(recipe, tmp_path / "cache") == "", "nothing is left to build"


@pytest.mark.parametrize(("begun", "total", "text"), [
    pytest.param(0, 1034, "package 0 of 1034 (0 %): bytes", id="nothing-yet"),
    pytest.param(864, 1034, "package 864 of 1034 (83 %): bytes", id="under-way"),
    pytest.param(1034, 1034, "package 1034 of 1034 (99 %): linking", id="all-begun-is-not-done"),
    pytest.param(0, 0, "package 0 of 0 (99 %): linking", id="compiled-before"),
])  # fmt: skip
def test_the_share_of_a_build_is_reported(begun: int, total: int, text: str) -> None:
    assert share_text(begun, total, "bytes") == text


def test_what_a_build_will_compile_is_counted_beforehand(tmp_path: Path, recipe: Recipe) -> None:
    built(recipe, tmp_path / "cache")
    listed = (tmp_path / "cache" / f"{recipe.key()}.packages").read_text().splitlines()
    assert "example.test/hello/cmd/hello" in listed


def test_a_build_that_fails_says_why_and_leaves_nothing_behind(
    tmp_path: Path, recipe: Recipe
) -> None:
    (recipe.module / "cmd" / "hello" / "main.go").write_text("package main\n\nfunc main() { x }\n")
    with pytest.raises(BuildFailed, match=r"(?s)the whole log is .*undefined: x"):
        built(recipe, tmp_path / "cache")
    assert not (tmp_path / "cache" / recipe.key()).exists()


def test_what_a_killed_build_left_is_cleared_away(tmp_path: Path, recipe: Recipe) -> None:
    left = tmp_path / "cache" / f"{recipe.key()}.partial"
    left.mkdir(parents=True)
    (left / "hi").write_text("half")
    assert (built(recipe, tmp_path / "cache") / "hi").stat().st_size > 1_000


def test_two_processes_at_once_build_only_once(tmp_path: Path, recipe: Recipe) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from greensched_testbed.binaries import Recipe, built; "
        "print(built(Recipe('greeting', Path(sys.argv[1]), ('hi',), 0.1, ('-ldflags', '-s -w'), "
        "{'hello': 'hi'}), Path(sys.argv[2])))"
    )
    command = [sys.executable, "-c", script, str(recipe.module), str(tmp_path / "cache")]
    builders = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    replies = [builder.communicate(timeout=120) for builder in builders]
    assert {builder.returncode for builder in builders} == {0}
    assert {out.strip() for out, _ in replies} == {str(tmp_path / "cache" / recipe.key())}
    assert sum("built in" in err for _, err in replies) == 1


def test_the_key_changes_with_the_flags_and_the_pinned_modules(recipe: Recipe) -> None:
    assert replace(recipe, flags=("-race",)).key() != recipe.key()
    key = recipe.key()
    (recipe.module / "go.sum").write_text("another")
    assert recipe.key() != key


@pytest.mark.parametrize(
    "shipped", [CONTROL_PLANE, PROMETHEUS, KUEUE, RELEASE], ids=lambda each: each.title
)
def test_the_shipped_modules_are_pinned(shipped: Recipe) -> None:
    assert (shipped.module / "go.sum").stat().st_size > 10_000
    assert "\ntool" in (shipped.module / "go.mod").read_text()
