"""Reads the results of a test run from pytest's JUnit file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class CountedTest:
    """One test of a run."""

    name: str
    outcome: str  # passed, failed or skipped
    why: str  # why it was skipped
    findings: frozenset[int]  # findings of the review whose fix it proves
    is_apart: bool = False  # an end-to-end test that does not use the cluster under test


@dataclass(frozen=True, slots=True)
class Counted:
    """The outcomes of some tests."""

    cases: tuple[CountedTest, ...]

    def count(self, outcome: str) -> int:
        """Return the number of tests with an outcome."""
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def reasons(self) -> dict[str, int]:
        """Return the number of skipped tests by reason."""
        whys = [case.why for case in self.cases if case.outcome == "skipped"]
        return {why: whys.count(why) for why in sorted(set(whys))}

    def figures(self, prefix: str) -> dict[str, Any]:
        """Return the numbers by name; without any test one counts as failed, since none began."""
        return {
            f"{prefix}_passed": self.count("passed"),
            f"{prefix}_failed": self.count("failed") if self.cases else 1,
            f"{prefix}_skipped": self.count("skipped"),
            f"{prefix}_skipped_because": self.reasons,
        }


def read_results(file: Path) -> Counted:
    """Return the results in a JUnit file; empty if there is no file."""
    return Counted(read_junit(file.read_text()) if file.exists() else ())


def read_junit(text: str) -> tuple[CountedTest, ...]:
    """Return the tests in pytest's JUnit XML."""
    return tuple(map(_case, ElementTree.fromstring(text).iter("testcase")))


def mended(cases: Sequence[CountedTest]) -> frozenset[int]:
    """Return the findings whose tests all passed."""
    proven = {number for case in cases for number in case.findings}
    refuted = {number for case in cases for number in case.findings if case.outcome != "passed"}
    return frozenset(proven - refuted)


def _case(element: ElementTree.Element) -> CountedTest:
    outcome, why = "passed", ""
    if (skipped := element.find("skipped")) is not None:
        outcome, why = "skipped", skipped.get("message", "")
    if element.find("failure") is not None or element.find("error") is not None:
        outcome = "failed"
    properties = element.iterfind("properties/property")
    said = [(each.get("name"), each.get("value", "0")) for each in properties]
    findings = frozenset(int(value) for name, value in said if name == "finding")
    return CountedTest(element.get("name", ""), outcome, why, findings, ("apart", "true") in said)
