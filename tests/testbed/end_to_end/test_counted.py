"""What tests showed is counted: skipped is not passed, and failed proves nothing."""

from pathlib import Path

import pytest

from greensched_testbed.end_to_end.counted import (
    Counted,
    CountedTest,
    mended,
    read_junit,
    read_results,
)

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase name="heard"><properties><property name="finding" value="26"/></properties></testcase>
<testcase name="refused"><properties><property name="finding" value="2"/></properties>
  <failure message="late">...</failure></testcase>
<testcase name="broken"><error message="no server">...</error></testcase>
<testcase name="alone"><properties><property name="apart" value="true"/></properties></testcase>
<testcase name="absent"><skipped message="needs root">...</skipped></testcase>
</testsuite></testsuites>"""


def case(outcome: str, *findings: int) -> CountedTest:
    return CountedTest("test", outcome, "", frozenset(findings))


def test_a_report_tells_each_outcome_and_what_it_proves() -> None:
    assert read_junit(JUNIT) == (
        CountedTest("heard", "passed", "", frozenset({26})),
        CountedTest("refused", "failed", "", frozenset({2})),
        CountedTest("broken", "failed", "", frozenset()),
        CountedTest("alone", "passed", "", frozenset(), is_apart=True),
        CountedTest("absent", "skipped", "needs root", frozenset()),
    )


@pytest.mark.parametrize(
    ("cases", "numbers"),
    [
        pytest.param([case("passed", 2)], {2}, id="its-test-passed"),
        pytest.param([case("passed", 2), case("failed", 2)], set(), id="one-of-two-failed"),
        pytest.param([case("passed", 2), case("skipped", 2)], set(), id="one-of-two-skipped"),
        pytest.param([case("skipped", 2)], set(), id="its-test-was-skipped"),
        pytest.param([case("passed")], set(), id="a-test-of-something-else"),
        pytest.param([], set(), id="no-test-ran"),
    ],
)
def test_a_finding_is_mended_where_all_its_tests_ran_and_passed(
    cases: list[CountedTest], numbers: set[int]
) -> None:
    assert mended(cases) == numbers


def test_skipped_tests_are_reported_by_their_reason() -> None:
    assert Counted(read_junit(JUNIT)).figures("e2e") == {
        "e2e_passed": 2,
        "e2e_failed": 2,
        "e2e_skipped": 1,
        "e2e_skipped_because": {"needs root": 1},
    }


def test_tests_that_did_not_begin_have_failed(tmp_path: Path) -> None:
    assert read_results(tmp_path / "none.xml").figures("e2e")["e2e_failed"] == 1
