"""Release notes: the section of a version in CHANGELOG.md."""

import re

from deploy.release.faults import ReleaseFault

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[?(?P<version>[^\]\s]+)\]?(?: - (?P<date>\S+))?[ \t]*$", re.MULTILINE)


def rehearsal_notes(changelog: str, version: str) -> str:
    """Return the section of a version if there is one, else that of UNRELEASED.

    Raises ReleaseFault as `release_notes` does.
    """
    return release_notes(changelog, version if _section(changelog, version) else UNRELEASED)


def require_nothing_unreleased(changelog: str) -> None:
    """Raise ReleaseFault if the section UNRELEASED has text, which a release would leave out."""
    if any(_section(changelog, UNRELEASED)[1:]):
        raise ReleaseFault(
            f"CHANGELOG.md has text under {UNRELEASED}: rename that section to the version with a"
            f" date, and add a new {UNRELEASED} above it"
        )


def release_notes(changelog: str, version: str) -> str:
    """Return a version's section of the changelog, without its heading.

    Raises ReleaseFault if there is no such section, or if it is empty or has no date.
    """
    section = _section(changelog, version)
    if not section:
        known = ", ".join(each["version"] for each in _HEADING.finditer(changelog)) or "none"
        raise ReleaseFault(
            f"CHANGELOG.md has no section {version} (it has {known}): rename {UNRELEASED} to it"
            f" with a date, and add a new {UNRELEASED} above it"
        )
    date, text = section
    if version != UNRELEASED and not date:
        raise ReleaseFault(f"CHANGELOG.md: ## [{version}] has no date: add one, as in - 2026-01-31")
    if not text:
        raise ReleaseFault(f"CHANGELOG.md: the section {version} is empty")
    return text + "\n"


def _section(changelog: str, version: str) -> tuple[str, str] | tuple[()]:
    """Return the date and the text of a version's section, "" each where it has none."""
    headings = list(_HEADING.finditer(changelog))
    for place, heading in enumerate(headings):
        if heading["version"] == version:
            end = headings[place + 1].start() if place + 1 < len(headings) else len(changelog)
            return heading["date"] or "", changelog[heading.end() : end].strip()
    return ()
