"""What the documents say holds: links resolve, tables are fresh, decisions are numbered."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from docs.build_site import navigation
from docs.catalogue_tables import policies_page, rule_rows
from docs.generate_tables import METRICS
from greensched_extender.metrics import ExtenderMetrics
from tests.repository_files import ROOT, files_of_the_repository

DOCUMENTS = [path for path in files_of_the_repository() if path.suffix == ".md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

# Labels whose values are known only in a cluster, and so are other labels of the same metric.
OF_A_CLUSTER = {"bundle", "namespace", "resource", "zone"}


def named(path: Path) -> str:
    """Return a path as it is written from the root."""
    return str(path.relative_to(ROOT))


def links(path: Path) -> list[str]:
    """Return the links of a document that lead to a place in the repository."""
    found = LINK.findall(CODE.sub("", path.read_text(encoding="utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def anchors(path: Path) -> set[str]:
    """Return the anchors that a page's headings get."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_link_leads_somewhere(path: Path) -> None:
    broken = []
    for link in links(path):
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_readme_takes_two_screens() -> None:
    """That many words, beside its pictures; more belongs into the pages that it links."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 550


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if path != index}
    assert {named(path) for path in pages - reached} == set()


def test_the_pages_name_the_oldest_kubernetes_that_the_chart_takes() -> None:
    """Every page that says `Kubernetes 1.x or later` says what the chart requires."""
    chart = (ROOT / "deploy/helm/greensched/Chart.yaml").read_text(encoding="utf-8")
    (oldest,) = re.findall(r'^kubeVersion: ">=(\d+\.\d+)\.0-0"$', chart, re.MULTILINE)
    named_by = {
        named(path): re.findall(r"Kubernetes (\d+\.\d+) or later", path.read_text(encoding="utf-8"))
        for path in DOCUMENTS
    }
    assert {"docs/install.md", "docs/quickstart.md"} <= {
        page for page, it in named_by.items() if it
    }
    assert {version for versions in named_by.values() for version in versions} == {oldest}


def test_every_folder_and_file_in_the_table_of_the_architecture_is_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) > 5
    missing = [
        f"{folder}/{place}"
        for folder, what, start in rows
        for place in re.findall(r"`([\w./]+(?:/|\.\w+))`", what + start)
        if not any((home / place).exists() for home in homes(ROOT / folder))
    ]
    assert missing == []


def homes(folder: Path) -> list[Path]:
    """Return where a component's files lie: in its folder, or in the package in it."""
    return [folder, *folder.glob("greensched_*")]


def test_every_page_is_once_in_the_sites_navigation() -> None:
    shown = navigation()
    pages = {named(path) for path in DOCUMENTS if "tests" not in path.relative_to(ROOT).parts}
    assert sorted(shown) == sorted(pages)


def test_tables_made_from_the_code_are_fresh() -> None:
    command = [sys.executable, "-m", "docs.generate_tables", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_a_row_of_a_rule_that_is_gone_goes_and_what_is_rewritten_by_hand_too() -> None:
    page = (ROOT / "docs/policies.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `bin-pack` .*\n", page, re.MULTILINE)
    by_hand = page.replace(row, "| `bin-pack` | the fullest | nobody |\n| `gone` | what | was |\n")
    assert policies_page(by_hand) == page


@pytest.mark.parametrize(
    ("says", "result", "source"),
    [
        ("Return the cost, [B,N].", "the cost", "this project"),
        ("Return 1.5 of it, [B,S]: so. More.\n\nSource: A, B 2001.", "1.5 of it: so", "A, B 2001"),
        ("Return the [B,L]\ncost.\n\nSource: theirs", "the\ncost", "theirs"),
    ],
)
def test_a_row_of_a_rule_is_its_first_sentence_and_its_source(
    says: str, result: str, source: str
) -> None:
    def rule() -> None: ...

    rule.__doc__ = says
    assert list(rule_rows({"a": rule})) == [("`a`", result, source)]


@pytest.mark.parametrize("component", METRICS)
def test_the_page_of_metrics_lists_the_values_of_a_label_unless_a_cluster_makes_them(
    component: str,
) -> None:
    page = (ROOT / "docs/metrics.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {component}\n")[1].split("\n## ")[0]
    bare = {
        (metric, label)
        for metric, labels in re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", section, re.MULTILINE)
        for label in re.findall(r"`(\w+)`(?!:)", labels)
        if not OF_A_CLUSTER & set(re.findall(r"`(\w+)`", labels))
    }
    assert bare == set()


def test_no_metric_has_a_series_per_pod_or_node() -> None:
    registry = CollectorRegistry()
    ExtenderMetrics(registry)
    names = {name for family in registry.collect() for s in family.samples for name in s.labels}
    assert names & {"pod", "node", "name", "uid", "instance"} == set()


def test_the_picture_of_the_layers_is_the_one_that_the_linter_holds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    picture = " ─► ".join(layer.replace("greensched_", "") for layer in layers)
    for page in ("CONTRIBUTING.md", "docs/architecture.md"):
        assert f"\n{picture}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_decisions_are_numbered_without_a_gap() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name[:5] for name in names] == [f"{n:04d}-" for n in range(1, len(names) + 1)]


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[?Unreleased\]?$", text, re.MULTILINE)
