"""Release notes: the section of a version in CHANGELOG.md."""

import re

from deploy.release.faults import ReleaseFault

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[?(?P<version>[^\]\s]+)\]?(?: - (?P<date>\S+))?[ \t]*$", re.MULTILINE)


def rehearsal_notes(changelog: str, version: str) -> str:
    """Return the section of a version if there is one, else that of UNRELEASED.

    Raises ReleaseFault as `release_notes` does.
    """
    has_its_own = any(each["version"] == version for each in _HEADING.finditer(changelog))
    return release_notes(changelog, version if has_its_own else UNRELEASED)


def release_notes(changelog: str, version: str) -> str:
    """Return a version's section of the changelog, without its heading.

    Raises ReleaseFault if there is no such section, or if it is empty or has no date.
    """
    headings = list(_HEADING.finditer(changelog))
    for place, heading in enumerate(headings):
        if heading["version"] != version:
            continue
        if version != UNRELEASED and not heading["date"]:
            raise ReleaseFault(
                f"CHANGELOG.md: ## [{version}] has no date: add one, as in - 2026-01-31"
            )
        end = headings[place + 1].start() if place + 1 < len(headings) else len(changelog)
        text = changelog[heading.end() : end].strip()
        if not text:
            raise ReleaseFault(f"CHANGELOG.md: the section {version} is empty")
        return text + "\n"
    known = ", ".join(each["version"] for each in headings) or "none"
    raise ReleaseFault(
        f"CHANGELOG.md has no section {version} (it has {known}): rename {UNRELEASED} to it with"
        f" a date, and add a new {UNRELEASED} above it"
    )
