import tempfile
from pathlib import Path

import pytest

from greensched_testbed.ports import free_ports
from greensched_testbed.scratch import new_scratch_folder, remove_abandoned


def test_a_folder_whose_owner_is_gone_is_removed_and_ours_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = new_scratch_folder()
    for name, owner in [("dead", "4194303 1.00"), ("reused", "1 1.00"), ("odd", "who?")]:
        folder = tmp_path / f"greensched-testbed-{name}"
        folder.mkdir()
        (folder / "owner").write_text(owner)
    (tmp_path / "somebody-elses").mkdir()
    remove_abandoned(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {ours.name, "somebody-elses", "greensched-testbed-odd"}


def test_ports_are_different_and_below_the_ephemeral_range() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert max(ports) < 32_768
