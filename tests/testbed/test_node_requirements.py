from pathlib import Path

import pytest

from greensched_testbed.requirements import NODES, CannotRunNodes, missing, require_nodes


def test_what_is_missing_is_named_by_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (lacks,) = [each for each in missing(NODES) if "packages" in each]
    assert "busybox-static conntrack containerd iproute2 nftables runc util-linux" in lacks
    with pytest.raises(CannotRunNodes, match="make e2e-setup"):
        require_nodes()


def test_a_package_that_is_there_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for program in ("containerd", "ctr"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not any("containerd" in each for each in missing(NODES))
