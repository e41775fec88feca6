"""Builds the website: `make site`.

The pages of `zensical.toml` and the files that they link to are copied into the same folder
structure, so that links that work on GitHub work on the site.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build" / "site-source"
BUILT = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
LINK = re.compile(r"""\]\(([^)\s#:]+)(?:#[^)]*)?\)|(?:src|srcset)="([^":]+)\"""")
FIRST_PAGE = '<!doctype html><meta http-equiv="refresh" content="0; url={}/index.html">\n'


def pages(entry: object) -> Iterator[str]:
    """Yield the pages that an entry of the navigation names, in reading order."""
    if isinstance(entry, str):
        yield entry
        return
    assert isinstance(entry, list | dict)
    for child in entry if isinstance(entry, list) else entry.values():
        yield from pages(child)


def navigation() -> list[str]:
    """Return every page of the site, in reading order."""
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    return list(pages(tomllib.loads(text)["project"]["nav"]))


def linked(page: Path) -> set[Path]:
    """Return the files of the repository that a page links to."""
    found = LINK.findall(page.read_text(encoding="utf-8"))
    places = {(page.parent / (link or image)).resolve() for link, image in found}
    return {place for place in places if place.is_file()}


def gather(source: Path) -> None:
    """Copy all pages, the files that they link to, and the site's own files."""
    shutil.rmtree(source, ignore_errors=True)
    named = {ROOT / page for page in navigation()}
    for path in named.union((ROOT / "docs" / "site").iterdir(), *map(linked, named)):
        copy = source / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def numbers(version: str) -> list[int]:
    """Return the numbers of a version, so that 0.10.0 comes after 0.9.0."""
    return [int(number) for number in re.findall(r"\d+", version)]


def publish(built: Path, site: Path, version: str) -> None:
    """Copy the built pages beside those of other versions; the start page opens them."""
    shutil.rmtree(site / version, ignore_errors=True)
    shutil.copytree(built, site / version)
    versions = [path.name for path in site.iterdir() if path.is_dir()]
    newest_first = sorted(versions, key=numbers, reverse=True)
    listed = [{"version": name, "title": name, "aliases": []} for name in newest_first]
    (site / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(FIRST_PAGE.format(version), encoding="utf-8")


def main() -> None:
    """Build the site of one version. Exits with the generator's status if a link is broken."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=project["version"])
    version = parser.parse_args().version
    gather(SOURCE)
    build = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    if status := subprocess.run(build, cwd=ROOT).returncode:
        sys.exit(status)
    publish(BUILT, SITE, version)
    print(f"site: open {(SITE / version / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
