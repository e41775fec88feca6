"""How the website is put together; `make site` builds it and refuses broken links."""

import json
from pathlib import Path

import pytest

from docs import build_site


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The folder of pages as the generator leaves it."""
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "index.html").write_text("new")
    return folder


def versions(site: Path) -> list[str]:
    listed = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    return [each["version"] for each in listed]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        pytest.param("0.9.0", "0.10.0", id="numbers-are-no-text"),
        pytest.param("0.9", "0.9.1", id="one-number-more"),
        pytest.param("v1.2.0", "2.0.0", id="a-letter-before-it"),
    ],
)
def test_a_later_version_has_greater_numbers(earlier: str, later: str) -> None:
    assert build_site.numbers(earlier) < build_site.numbers(later)


def test_versions_are_listed_newest_first_and_the_one_built_last_opens(
    built: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    for version in ("0.10.0", "0.2.0", "0.9.0"):
        build_site.publish(built, site, version)
    assert versions(site) == ["0.10.0", "0.9.0", "0.2.0"]
    assert "url=0.9.0/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_a_version_that_is_built_again_keeps_nothing_of_before(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    build_site.publish(built, site, "0.1.0")
    (site / "0.1.0" / "removed-page.html").write_text("old")
    build_site.publish(built, site, "0.1.0")
    assert [path.name for path in (site / "0.1.0").iterdir()] == ["index.html"]
    assert versions(site) == ["0.1.0"]


def test_pages_are_gathered_with_the_pictures_and_files_that_they_link_to(tmp_path: Path) -> None:
    build_site.gather(tmp_path)
    gathered = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert set(build_site.navigation()) <= gathered
    linked = {"docs/images/decisions.svg", "examples/09-ledger-claim.yaml"}
    assert linked <= gathered
    assert "docs/build_site.py" not in gathered, "no page links to it"
