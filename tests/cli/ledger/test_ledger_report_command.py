import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
import uvicorn
import yaml
from starlette.applications import Starlette
from typer.testing import CliRunner, Result

from greensched_cli.__main__ import app
from greensched_cli.ledger.files import file_schema, write_files
from greensched_cli.ledger.source import OPERATOR, LedgerSpan, lines_of, read_ledger
from greensched_cli.reading.replicas import Whereabouts
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.ledger_records import (
    Amounts,
    LedgerLine,
    LedgerRecord,
    Loss,
    LossReason,
    Subject,
    What,
    encode_line,
    flat,
)
from greensched_operator.ledger.routes import LEDGER_PATH, ledger_routes
from greensched_operator.ledger.store import LedgerStore
from greensched_testbed.ports import free_port

Replica = Callable[[dict[str, Any]], str]
NOBODY = Whereabouts(None, None, None, "greensched", None)
NOW = time.time()
HOSTILE = "<script>alert(1)</script>"


def record(number: int, what: What, **others: Any) -> LedgerRecord:
    subject = Subject(
        kind="Job", namespace="ml" if number % 2 else HOSTILE, name=f"j{number}", uid=f"u{number}"
    )
    return LedgerRecord(
        what=what, at=NOW - 3_600.0 * number, subject=subject, currency="EUR",
        planned=Amounts(3.6e6, 100.0 + number, 1.0), run_now=Amounts(3.6e6, 400.0, 2.0), **others,
    )  # fmt: skip


RECORDS = [
    *(record(number, What.RELEASED, reason="planned start") for number in range(1, 9)),
    *(record(number, What.PLANNED, is_shadow=True) for number in range(20, 24)),
    record(30 * 24, What.RELEASED),  # a month ago
]
LOSS = Loss("l1", LossReason.DISK_FULL, NOW - 60.0, NOW - 50.0, 17)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.db"
    store = LedgerStore(str(file))
    store.write(RECORDS, [LOSS])
    store.close()
    return file


@pytest.fixture
def served(ledger: Path) -> Iterator[str]:
    """The address of an operator that serves the ledger."""
    port = free_port()
    routes = ledger_routes(LedgerStore(str(ledger)))
    config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10.0)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_a_ledger_is_reported_on_the_terminal_and_written_as_a_page_and_tables(
    ledger: Path, tmp_path: Path
) -> None:
    done = run("--ledger", ledger, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for told in ("Work that was started", "What shadow mode would have saved", "17 (disk_full)"):
        assert told in done.output
    assert re.search(r"carbon +8 +3\.20 kg +0\.84 kg +2\.36 kg +-73\.9 %", done.output)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"report.html", "ledger.csv", "ledger.parquet"}


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_the_numbers_behind_the_tables(
    ledger: Path, output: str, read: Callable[[str], Any]
) -> None:
    done = run("--ledger", ledger, "-o", output)
    assert done.exit_code == 0, done.output
    told = read(done.stdout)
    carbon = next(each for each in told["started"]["whole"] if each["name"] == "carbon")
    assert (carbon["unit"], carbon["workloads"]) == ("kg", 8)
    assert carbon["changePercent"] == pytest.approx(-73.9, abs=0.05)
    assert carbon["changePercentLow"] is None, "fewer than 20 workloads have no interval"
    assert told["lostRecords"] == {"disk_full": 17} and told["shadow"]["workloads"] == 4
    assert set(told["started"]["byNamespace"]) == {"ml", HOSTILE}


def test_the_page_needs_no_network_and_names_its_baseline(ledger: Path, tmp_path: Path) -> None:
    assert run("--ledger", ledger, "--out", tmp_path).exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)  # Plotly's
    assert "http" not in own
    assert "against run-now" in own and "does not cover" in own
    assert "folder plots" not in own
    assert "decisions missing in the ledger" in own


def test_names_in_the_page_are_text(ledger: Path, tmp_path: Path) -> None:
    assert run("--ledger", ledger, "--out", tmp_path).exit_code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert HOSTILE not in page and "&lt;script&gt;alert" in page


def test_only_a_span_of_time_and_a_namespace_are_read(ledger: Path) -> None:
    def names(span: LedgerSpan) -> list[str]:
        return [each.subject.name for each in read_ledger(str(ledger), NOBODY, span).records]

    assert names(LedgerSpan(NOW - 3 * 3_600.0, NOW)) == ["j3", "j2", "j1"]
    assert names(LedgerSpan(NOW - 3 * 3_600.0, NOW, "ml")) == ["j3", "j1"]
    assert len(names(LedgerSpan(0.0, NOW))) == len(RECORDS)


@pytest.mark.parametrize(
    ("options", "namespace", "workloads"),
    [
        pytest.param((), None, 8, id="all-by-default"),
        pytest.param(("-A",), None, 8, id="all"),
        pytest.param(("-n", "ml"), "ml", 4, id="one"),
    ],
)
def test_a_ledger_of_a_file_has_no_context_and_is_counted_whole(
    ledger: Path, options: tuple[str, ...], namespace: str | None, workloads: int
) -> None:
    told = json.loads(run("--ledger", ledger, *options, "-o", "json").stdout)
    assert (told["namespace"], told["started"]["workloads"]) == (namespace, workloads)


def test_a_report_on_one_namespace_names_it(ledger: Path, tmp_path: Path) -> None:
    told = run("--ledger", ledger, "-n", "ml", "--out", tmp_path).output
    assert "Work that was started in namespace ml" in told
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert " in namespace ml, against run-now" in page
    assert "in namespace" not in run("--ledger", ledger).output


def test_an_operator_tells_the_same_as_its_file(ledger: Path, served: str) -> None:
    span = LedgerSpan(0.0, NOW)
    asked, opened = (read_ledger(each, NOBODY, span) for each in (served, str(ledger)))
    assert asked.records == opened.records and asked.losses == opened.losses == [LOSS]


def test_an_empty_span_is_reported(ledger: Path) -> None:
    done = run("--ledger", ledger, "--since", "1s")
    assert (done.exit_code, "no decision in this period\n" in done.output) == (0, True)
    done = run("--ledger", ledger, "--since", "1s", "-n", "ml")
    assert "no decision in this period in namespace ml; -A counts all" in done.output


@pytest.mark.parametrize(("arguments", "kind", "told"), [
    (["--since", "yesterday"], BadInput, "--since: 'yesterday' is not a duration"),
    (["--since", "0s"], BadInput, "above zero"),
    (["-n", "ml", "-A"], BadInput, "leave one of them out"),
    (["a-run", "-n", "ml"], BadInput, "a simulated run, not a ledger: leave -n and -A out"),
    (["a-run", "-A"], BadInput, "a simulated run, not a ledger: leave -n and -A out"),
    (["--ledger", "absent.db"], BadInput, "no such file"),
    (["--ledger", "mysql://db/x"], BadInput, "the ledger must be a file or"),
    (["--ledger", "postgresql://127.0.0.1:1/x"], ApiUnavailable, "127.0.0.1:1/x"),
    (["--ledger", "http://127.0.0.1:1"], ApiUnavailable, "no controller answered with its ledger"),
])  # fmt: skip
def test_what_cannot_be_read_is_reported(
    arguments: list[str], kind: type[Exception], told: str
) -> None:
    done = run(*arguments)
    assert isinstance(done.exception, kind) and told in str(done.exception)


def test_an_operator_without_a_ledger_is_reported(replica: Replica) -> None:
    with pytest.raises(ApiUnavailable, match="HTTP 404: not here"):
        read_ledger(replica({}), NOBODY, LedgerSpan(0.0, 1.0))


def test_a_server_that_is_no_operator_is_reported(replica: Replica) -> None:
    path = f"{LEDGER_PATH}?since=0.000&until=1.000"
    with pytest.raises(ApiUnavailable, match="or is not a ledger"):
        read_ledger(replica({path: {"decisions": []}}), NOBODY, LedgerSpan(0.0, 1.0))


@pytest.mark.parametrize("body", [
    pytest.param(b"", id="nothing"),
    pytest.param(encode_line(LedgerLine(loss=LOSS)), id="no-end"),
    pytest.param(encode_line(LedgerLine(loss=LOSS)) + encode_line(LedgerLine(end=2)),
        id="a-line-is-missing"),
    pytest.param(encode_line(LedgerLine(end=0))[:-5], id="half-a-line"),
])  # fmt: skip
def test_an_answer_that_was_cut_off_is_never_taken_for_whole(body: bytes) -> None:
    with pytest.raises(ValueError, match="cut off|not a line"):
        lines_of(body)


def test_the_operators_pods_are_looked_for_by_labels_that_no_value_changes() -> None:
    assert OPERATOR.selector.endswith("app.kubernetes.io/component=controller")


def test_both_files_hold_every_record_and_column(tmp_path: Path) -> None:
    parquet, csv = write_files(tmp_path, RECORDS)
    rows = pyarrow.parquet.read_table(parquet)
    assert rows.to_pylist() == [
        {name: flat(each)[name] for name in file_schema().names} for each in RECORDS
    ]
    assert pyarrow.csv.read_csv(csv).num_rows == len(RECORDS)
    assert pyarrow.csv.read_csv(csv).column_names == rows.column_names
