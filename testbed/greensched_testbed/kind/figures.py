"""What a run of the end-to-end tests comes to, in numbers."""

import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

_ENDS = ("failure", "error", "skipped")


def counted(results: Path) -> dict[str, Any]:
    """Return from JUnit's XML how many tests passed, failed and were skipped, and why those were.

    Without a test it counts one failure: they have not even begun.
    """
    cases = list(ET.parse(results).iter("testcase")) if results.exists() else []
    ends = {tag: [case for case in cases if case.find(tag) is not None] for tag in _ENDS}
    failed = len(ends["failure"]) + len(ends["error"])
    return {
        "kind_e2e_passed": len(cases) - failed - len(ends["skipped"]),
        "kind_e2e_failed": failed if cases else 1,
        "kind_e2e_skipped": len(ends["skipped"]),
        "kind_e2e_skipped_because": dict(Counter(map(_reason, ends["skipped"]))),
    }


def _reason(case: ET.Element) -> str:
    skipped = case.find("skipped")
    return "" if skipped is None else skipped.get("message", "")
