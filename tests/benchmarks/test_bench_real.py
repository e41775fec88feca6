"""What `make bench-real` writes of figures that no test measured, and of tests apart."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.real import IMAGE_TESTS, measure, within_and_apart
from greensched_testbed.end_to_end.counted import Counted, CountedTest

E2E: dict[str, Any] = {
    "nodes_ready_s": 6.0, "install_ready_s": 20.0, "worst_memory_share": 0.4,
    "removed_s": 2.0, "e2e_s": 500.0, "left_behind": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "absent"),
    [
        pytest.param(E2E, [], id="all-is-there"),
        pytest.param({"nodes_ready_s": 6.0, "install_ready_s": 20.0, "worst_memory_share": 0.4},
                     ["removed_s", "e2e_s", "left_behind"], id="the-cluster-was-not-removed"),
        pytest.param(E2E | {"worst_memory_share": float("nan")}, ["worst_memory_share"],
                     id="no-kubelet-answered"),
        pytest.param({}, list(E2E), id="no-test-ran"),
    ],
)  # fmt: skip
def test_a_figure_that_was_not_measured_is_null_and_reported(
    figures: dict[str, Any], absent: list[str], tmp_path: Path
) -> None:
    result = tmp_path / "real.json"
    assert measure({"e2e": lambda: figures}, result) == absent
    written = json.loads(result.read_text())
    assert {name for name, value in written.items() if value is None} == set(absent)
    assert written.items() >= {name: figures[name] for name in E2E if name not in absent}.items()


def test_a_part_that_is_not_run_lacks_nothing(tmp_path: Path) -> None:
    assert measure({"images": lambda: {"extender_layers_mb": 139.0}}, tmp_path / "real.json") == []


def test_end_to_end_tests_outside_of_the_measured_time_have_not_passed_within_it() -> None:
    cases = [
        CountedTest("test", outcome, "", frozenset(), is_apart)
        for outcome, is_apart in [
            *(("passed", False), ("passed", False), ("passed", True)),
            *(("failed", False), ("failed", True), ("skipped", True)),
        ]
    ]
    assert within_and_apart(Counted(tuple(cases))) == {
        "e2e_passed": 2, "e2e_passed_apart": 1, "e2e_failed": 2, "e2e_skipped": 1,
        "e2e_skipped_because": {"": 1},
    }  # fmt: skip


def test_the_tests_of_images_are_found() -> None:
    """They were not for a while: `make test` leaves them out, and so did the benchmark."""
    collecting = [sys.executable, "-m", "pytest", "-n0", "-q", "--collect-only", *IMAGE_TESTS]
    found = subprocess.run(collecting, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    assert "tests/images/" in found.stdout
