"""Release notes: the section of CHANGELOG.md that tells of one version."""

import re

from deploy.release.faults import ReleaseFault

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[?(?P<version>[^\]\s]+)\]?(?: - (?P<date>\S+))?[ \t]*$", re.MULTILINE)


def rehearsal_notes(changelog: str, version: str) -> str:
    """Return the section of a version where there is one, else that of UNRELEASED.

    Raises ReleaseFault as `release_notes` does.
    """
    has_its_own = any(each["version"] == version for each in _HEADING.finditer(changelog))
    return release_notes(changelog, version if has_its_own else UNRELEASED)


def release_notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version, without its heading.

    Raises ReleaseFault where there is no such section, or where it says nothing.
    """
    headings = list(_HEADING.finditer(changelog))
    for place, heading in enumerate(headings):
        if heading["version"] != version:
            continue
        if version != UNRELEASED and not heading["date"]:
            raise ReleaseFault(f"CHANGELOG.md: ## [{version}] has no date: write - 2026-01-31")
        end = headings[place + 1].start() if place + 1 < len(headings) else len(changelog)
        text = changelog[heading.end() : end].strip()
        if not text:
            raise ReleaseFault(f"CHANGELOG.md says nothing of {version}")
        return text + "\n"
    known = ", ".join(each["version"] for each in headings) or "none"
    raise ReleaseFault(
        f"CHANGELOG.md has no section {version} (it has {known}): give {UNRELEASED} that name"
        " and a date, and begin a new one above it"
    )
