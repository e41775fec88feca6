"""The command line as it is with the extra `cli` alone: what else there is cannot be imported."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from greensched_cli.extras import BROUGHT, extra_with
from greensched_cli.installation import install_command
from greensched_core.ledger_records import (
    Amounts,
    LedgerLine,
    LedgerRecord,
    Subject,
    What,
    encode_line,
)
from tests.cli.stand_in_server import answering

Replica = Callable[[dict[str, Any]], str]

OTHERS = (
    "duckdb", "gymnasium", "kubernetes", "llvmlite", "pettingzoo", "platformdirs",
    "prometheus_client", "psycopg", "starlette", "tenacity", "uvicorn", "uvloop",
)  # fmt: skip
BLOCKED = sorted({*OTHERS, *(name for names in BROUGHT.values() for name in names)})
RUNS = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from greensched_cli.entry import main
main()
"""
LIGHT = ["status", "explain", "nodes", "release", "report", "policy list", "policy show"]
WITH_MORE = [
    "policy check", "simulate", "compare", "bound", "reproduce", "scenario check",
    "scenario schema", "demo", "replay", "benchmark", "cluster up", "cluster down",
    "cluster status",
]  # fmt: skip
EXTRAS = {
    "policy check": "policies",
    "simulate x.yaml --policy run-now": "simulator",
    "compare x.yaml": "simulator",
    "bound x.yaml": "simulator",
    "reproduce gaia": "simulator",
    "scenario check x.yaml": "simulator",
    "scenario schema": "simulator",
    "report folder": "simulator",
    "report --out folder": "report",
    "report --ledger ledger.db": "report",
    "demo": "testbed",
    "replay x.csv -n here": "testbed",
    "benchmark": "testbed",
    "cluster up": "testbed",
    "cluster down": "testbed",
    "cluster status": "testbed",
}
AWAY = """
current-context: away
clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: away, context: {cluster: away}}]
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUNS, ",".join(BLOCKED), *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def ledger() -> Iterator[str]:
    """The address of an operator's ledger with a few records."""
    records = [
        LedgerRecord(
            what=What.RELEASED, at=1_000.0 * number, currency="EUR",
            subject=Subject(kind="Job", namespace="ml", name=f"j{number}", uid=f"u{number}"),
            planned=Amounts(3.6e6, 100.0 + number, 1.0), run_now=Amounts(3.6e6, 400.0, 2.0),
        )
        for number in range(30)
    ]  # fmt: skip
    lines = [
        *(encode_line(LedgerLine(record=each)) for each in records),
        encode_line(LedgerLine(end=30)),
    ]

    with answering(lambda _: b"".join(lines)) as address:
        yield address


@pytest.mark.parametrize("verb", ["", *LIGHT, *WITH_MORE])
def test_every_verb_is_listed_and_has_its_help(verb: str) -> None:
    done = run(*verb.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    if not verb:
        listed = {each.split()[0] for each in (*LIGHT, *WITH_MORE)}
        assert {each for each in listed if f" {each} " not in done.stdout} == set()


def test_a_pod_is_explained_and_nodes_are_listed(
    replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({
        "/v1/decisions/default/web": {"decisions": [decision]}, "/v1/nodes": {"nodes": []},
    })  # fmt: skip
    done = run("explain", "web", "-n", "default", "--address", address)
    assert (done.returncode, done.stderr) == (0, "")
    assert "clean was the cheapest of 2." in done.stdout
    done = run("nodes", "--address", address)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_ledger_of_a_cluster_is_reported_with_its_intervals(ledger: str, output: str) -> None:
    done = run("report", "--ledger", ledger, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("changePercentLow" if output == "json" else "-71.4 % (-72.2 to -70.6)") in done.stdout


def test_policies_are_listed_and_the_shipped_bundle_is_shown() -> None:
    done = run("policy", "list")
    assert done.returncode == 0 and "  carbon-time\n" in done.stdout, done.stderr
    done = run("policy", "show")
    assert done.returncode == 0 and "untrained" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "verb", ["status", "status --released", "status job/x", "release --all", "release job/x",
             "release --emergency-release status", "nodes", "report"],
)  # fmt: skip
def test_a_cluster_is_asked(tmp_path: Path, verb: str) -> None:
    (tmp_path / "config").write_text(AWAY)
    done = run(*verb.split(), "--kubeconfig", str(tmp_path / "config"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "GET /api" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("verb", "extra"), EXTRAS.items())
def test_what_needs_more_says_in_a_sentence_how_to_get_it(verb: str, extra: str) -> None:
    done = run(*verb.split())
    assert (done.returncode, done.stdout) == (2, "")
    missing = ", ".join(BROUGHT[extra][:3]) + (", …" if len(BROUGHT[extra]) > 3 else "")
    assert done.stderr.startswith("greensched: ") and len(done.stderr.splitlines()) == 1
    told = f" needs packages that are missing ({missing}): {install_command(extra)}\n"
    assert done.stderr.endswith(told)


def test_what_nobody_has_thought_of_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(AWAY)
    asked = ["status", "--kubeconfig", str(tmp_path / "config")]
    done = subprocess.run(
        [sys.executable, "-c", RUNS, "cronsim", *asked],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"greensched: cronsim is missing: {install_command('cli')}\n"


def test_a_login_that_needs_an_extra_says_how_to_get_it(tmp_path: Path) -> None:
    config = AWAY.replace("context: {cluster: away}", "context: {cluster: away, user: me}")
    user = "users: [{name: me, user: {auth-provider: {name: oidc}}}]"
    (tmp_path / "config").write_text(config + user)
    done = run("status", "--kubeconfig", str(tmp_path / "config"))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    told = f"auth-provider, which needs the extra `oidc`: {install_command('oidc')}\n"
    assert done.stderr.endswith(told)


@pytest.mark.parametrize(
    ("module", "extra"),
    [("rich.table", "cli"), ("kubernetes", "oidc"), ("numpy", "policies"), ("plotly", "report"),
     ("numba", "simulator"), ("prometheus_client", "testbed"), ("of_nobody", "all")],
)  # fmt: skip
def test_the_lightest_extra_with_a_package_is_named(module: str, extra: str) -> None:
    assert extra_with(module) == extra
