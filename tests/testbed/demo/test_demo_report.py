"""The demo's page: what it says of itself, and that nothing in it can end its scripts early."""

import json
import re
from pathlib import Path

import pytest

from greensched_cli.output import Output
from greensched_cli.terminal import plain_console
from greensched_cli.testbed.demo_terminal import print_outcome
from greensched_core.testing import make_node
from greensched_extender.settings import ExtenderSettings
from greensched_simulator.formats.google_events import CellMachine
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_testbed.demo.billing import BillAssumptions, BilledPod, bill_run
from greensched_testbed.demo.report import write_demo_report
from greensched_testbed.demo.results import HeldPod, Holding, ThreeRuns, demo_summary
from greensched_testbed.demo.run import DemoOptions, DemoOutcome, assumed, workload

HOUR_S = 3600.0
ZONE = "</script>"


GRID = {ZONE: [SyntheticSlot(0.0, 100.0, 50.0)]}


@pytest.fixture
def results() -> ThreeRuns:
    runs = [
        bill_run(
            name, [BilledPod(1.0, 0.0, HOUR_S, "n", 0.0, 0.5)], [make_node("n", zone=ZONE)],
            {"n": "old"}, GRID, HOUR_S, BillAssumptions(0.5, 0.6, 1.2),
        )
        for name in ("greensched", "default-scheduler")
    ]  # fmt: skip
    waited = HeldPod("a", ZONE, 0.0, HOUR_S / 2, HOUR_S, "planned-start", 1.0, 100.0, 100.0)
    holding = Holding(1, (waited,), {"planned-start": 1}, 0, 0)
    return ThreeRuns(runs[1], runs[0], runs[0], holding)


@pytest.fixture
def page(results: ThreeRuns, tmp_path: Path) -> str:
    write_demo_report(tmp_path / "report.html", results, GRID, [("grid", "synthetic")])
    return (tmp_path / "report.html").read_text()


def test_results_are_printed_as_tables_or_as_the_summary(
    results: ThreeRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = DemoOutcome(results, demo_summary(results), Path("report.html"))
    print_outcome(plain_console(), outcome, Output.TABLE)
    assert "by hardware generation" in capsys.readouterr().out
    print_outcome(plain_console(), outcome, Output.JSON)
    assert json.loads(capsys.readouterr().out) == outcome.summary


def test_no_picture_is_named_that_is_not_there(page: str) -> None:
    (told,) = re.findall("<noscript>(.*?)</noscript>", page)
    assert told.endswith("the tables do not.</p>")


def test_a_sentence_and_a_picture_come_before_the_first_table(page: str) -> None:
    assert page.index("The same work emitted") < page.index('class="plot"') < page.index("<table")


def test_every_headline_figure_says_that_it_is_simulated(page: str) -> None:
    tiles = re.findall(r'<div class="tile"><b>[^<]*</b><span>([^<]*)</span>', page)
    assert len(tiles) == 6
    assert all("simulated" in tile for tile in tiles)


def test_every_plot_is_data_that_the_page_draws_once_it_is_laid_out(page: str) -> None:
    plots = re.findall(r'<div class="plot"><script type="application/json">(.*?)</script>', page)
    assert len(plots) == 7
    assert all(json.loads(plot)["data"] for plot in plots)
    assert page.rindex("Plotly.newPlot(place") > page.rindex('class="plot"')


def test_a_held_pod_is_drawn_from_its_arrival_to_its_start_and_then_as_it_runs(page: str) -> None:
    (*_bills, held, _, _, _) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    lines = {each["name"]: each["x"] for each in json.loads(held)["data"]}
    assert lines["held"] == [0.0, 0.5, None]
    assert lines["released and placed"] == [0.5]
    assert lines["runs"][0] == 0.5


def test_words_on_idle_bars_are_dark_and_on_others_light(page: str) -> None:
    (bill, *_) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    colours = {bar["name"]: bar["textfont"]["color"] for bar in json.loads(bill)["data"]}
    assert colours == {"above idle": "#ffffff", "idle": "#1f2933"}


def test_the_demo_assumes_what_the_extender_ships_with(tmp_path: Path) -> None:
    shipped = {name: field.default for name, field in ExtenderSettings.model_fields.items()}
    held = assumed(DemoOptions(tmp_path))
    assert held.utilisation_ratio == shipped["utilisation_ratio"]
    assert held.gpu_ratio == shipped["gpu_ratio"]
    assert held.default_pue == shipped["default_pue"]


def test_the_demo_plays_a_google_trace_on_the_machine_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "part-00000-of-00500.csv"
    path.write_text(
        "".join(
            f"{at}000000,,7,{task},1,{kind},u,2,9,0.5,0.25,0,0\n"
            for task in range(2)
            for kind, at in ((0, 600 + task), (1, 610), (4, 900))
        )
    )
    options = DemoOptions(
        tmp_path, trace=path, trace_options={"largest_machine": CellMachine(64.0, 256 * 2.0**30)}
    )
    assert [task.cpu_cores for task in workload(options).tasks] == [32.0, 32.0]
