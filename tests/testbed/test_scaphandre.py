from pathlib import Path

import pytest

from greensched_testbed.errors import CannotBuildHere
from greensched_testbed.scaphandre import libraries_of, scaphandre_program


def test_on_a_machine_without_cargo_the_message_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotBuildHere, match="needs cargo and a C compiler; cargo is missing"):
        scaphandre_program(tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.partial"))


def test_a_program_needs_its_loader_and_its_libraries() -> None:
    program = Path("/usr/bin/env")
    if not program.exists() or not Path("/proc").exists():
        pytest.skip("Linux alone has ldd")
    names = [path.name for path in libraries_of(program)]
    assert any(name.startswith("libc.") for name in names)
    assert any(name.startswith("ld-") for name in names)
