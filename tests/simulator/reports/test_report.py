"""Reports: honest tables, one page without the network, pictures for papers."""

import dataclasses
import html
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_simulator.policy import policies_named, policy_named
from greensched_simulator.reports.looks import in_two_lines
from greensched_simulator.reports.report import write_run_report
from greensched_simulator.reports.views import Point, front, views_of
from greensched_simulator.results.cells import (
    Cell,
    ConfidenceInterval,
    ResultRow,
    amount,
    change_text,
    count,
    large,
    tone_of,
)
from greensched_simulator.results.comparison import (
    CARBON,
    MISSED,
    confidence_interval,
    difference,
)
from greensched_simulator.results.run_folder import FinishedRun, read_run
from greensched_simulator.results.tables import (
    change_rows,
    done_rows,
    losses,
    outcome_rows,
    taken_rows,
)

Finished = Callable[..., FinishedRun]
NAN = math.nan
SPREAD, LATE, SAME = map(policy_named, ("spread", "carbon-time", "bin-pack"))
REJECTING = policy_named("reject-all")
# The second job of `carbon-time` misses its deadline: it may end until 600 + 1800 + 3600 s.
THREE = {"spread": (0.0, 600.0), "carbon-time": (3600.0, 7200.0), "bin-pack": (0.0, 600.0)}


def texts(row: ResultRow) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


@pytest.mark.parametrize(("value", "text"), [
    pytest.param(128.213, "128.21", id="large"),
    pytest.param(0.0, "0.00", id="nothing"),
    pytest.param(0.1, "0.10", id="a-tenth"),
    pytest.param(0.0996, "0.100", id="just-below-a-tenth"),
    pytest.param(0.00357, "0.0036", id="small"),
    pytest.param(-0.00357, "-0.0036", id="small-and-negative"),
    pytest.param(1e-12, "0.00", id="too-small-to-tell"),
])  # fmt: skip
def test_a_small_amount_keeps_the_digits_that_count(value: float, text: str) -> None:
    assert amount(value) == text


def test_large_figures_have_their_thousands_parted() -> None:
    assert (large(12345.6), large(-12345.6), large(12.345)) == ("12,346", "-12,346", "12.35")
    assert (count(4000), count(4000.0), count(0.25)) == ("4,000", "4,000", "0.2")


@pytest.mark.parametrize(("percent", "text", "tone"), [
    pytest.param(ConfidenceInterval(-12.34, -13.0, -11.68), "-12.3 ±0.7 %", "better", id="better"),
    pytest.param(ConfidenceInterval(3.0, 1.0, 5.0), "+3.0 ±2.0 %", "worse", id="worse"),
    pytest.param(ConfidenceInterval(0.5, -1.0, 2.0), "+0.5 ±1.5 %", "", id="open"),
    pytest.param(ConfidenceInterval(-0.01, -0.02, 0.0), "0.0 ±0.0 %", "",
        id="too-little-to-have-a-sign"),
    pytest.param(ConfidenceInterval(7.0, NAN, NAN), "+7.0 %", "", id="one-seed"),
    pytest.param(ConfidenceInterval(NAN, NAN, NAN), "–", "", id="nothing-to-compare-with"),
])  # fmt: skip
def test_a_change_is_reported_with_its_interval(
    percent: ConfidenceInterval, text: str, tone: str
) -> None:
    assert (change_text(percent), tone_of(percent)) == (text, tone)


def test_the_interval_is_students_of_the_mean() -> None:
    # t(0.975, 2) = 4.30265; standard deviation 1, standard error 1 / √3.
    found = confidence_interval(np.array([1.0, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high == pytest.approx(2.0 + 4.30265 / math.sqrt(3), abs=1e-5)
    assert found.low == pytest.approx(2.0 - 4.30265 / math.sqrt(3), abs=1e-5)


def test_a_change_against_nothing_has_no_percentage(finished: Finished) -> None:
    found = difference(MISSED, finished(THREE, seeds=(1, 2)).results, LATE)
    assert found.change == ConfidenceInterval(1.0, 1.0, 1.0)
    assert math.isnan(found.percent.mean)


@pytest.mark.parametrize(("label", "lines"), [
    pytest.param("carbon-time+least-carbon", "carbon-time+least-carbon", id="short-enough"),
    pytest.param("a-single-rule-with-a-very-long-name", "a-single-rule-with-a-very-long-name",
                 id="nowhere-to-break"),
    pytest.param("lowest-window+spread+sleep-at-break-even",
                 "lowest-window+spread<br>+sleep-at-break-even", id="where-lines-are-shortest"),
])  # fmt: skip
def test_a_long_label_takes_two_lines(label: str, lines: str) -> None:
    assert in_two_lines(label) == lines


def test_equal_decisions_change_nothing(finished: Finished) -> None:
    assert difference(CARBON, finished(THREE).results, SAME).change.mean == 0.0


def test_deadlines_missed_stand_beside_the_saving(finished: Finished) -> None:
    results = finished(THREE, seeds=(1, 2)).results
    head, baseline, late, same = change_rows(results)
    assert head[1] == "deadlines\nmissed"
    assert texts(baseline)[:3] == ["run-now+spread", "0", "baseline"]
    assert late[:2] == ("carbon-time", Cell("1", "worse"))
    assert texts(same)[1:] == ["0", *["0.0 ±0.0 %"] * 3]
    assert texts(done_rows(results)[2])[:5] == ["carbon-time", "2", "8.00", "1", "1"]


def test_where_policies_lose_is_said(finished: Finished) -> None:
    told = losses(finished(THREE, seeds=(1, 2)).results)
    assert told[0] == "more deadlines missed than run-now+spread: carbon-time (+1.00 ±0.00)"
    assert told[1] == "more wait than run-now+spread: carbon-time (+1.42 ±0.00 h)"
    assert not any("bin-pack" in line for line in told)
    assert losses(finished({"spread": (0.0, 0.0)}, name="alone").results) == []


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    def point(carbon_kg: float, cost: float) -> Point:
        return Point(SPREAD, carbon_kg, cost, 0.0, 1.0, 0.0)

    best = [point(1.0, 9.0), point(2.0, 5.0), point(4.0, 1.0)]
    others = [point(2.0, 6.0), point(3.0, 5.0), point(4.0, 1.0), point(9.0, 9.0)]
    assert front([*others, *best], "cost") == best


def test_plots_show_what_the_rows_tell(finished: Finished) -> None:
    views = views_of(finished(THREE, seeds=(1, 2)))
    power = views.power[SPREAD]
    assert power.hours.tolist() == [0.0, 1.0, 2.0, 3.0]
    # 25 W above idle for the first job, 50 W for half an hour for the second one.
    assert power.values.tolist() == pytest.approx([0.25, 0.2, 0.2, 0.2])
    assert views.grid["<Z>"].values.tolist() == [500.0, 500.0]
    waited = dict(zip(views.waits.hours, views.waits.share_pct[LATE], strict=True))
    assert waited[0.0] == 0.0
    assert min(hours for hours, share in waited.items() if share >= 50.0) == 1.0
    assert max(waited.items()) == (6600 / 3600, 100.0)


def page_of(run: FinishedRun) -> str:
    return write_run_report(run).read_text(encoding="utf-8")


def without_plotly(page: str) -> str:
    """Return a page without its first script, which is plotly itself."""
    return re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)


def test_a_page_needs_no_network_and_nothing_in_it_ends_a_script(finished: Finished) -> None:
    page = without_plotly(page_of(finished(THREE, seeds=(1, 2))))
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", page)
    plots = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert len(plots) == 9
    assert all(json.loads(plot)["data"] for plot in plots)
    assert "<Z>" not in page and "&lt;Z&gt;" in page


def test_every_switch_has_a_line_to_show_and_hide(finished: Finished) -> None:
    page = page_of(finished(THREE))
    drawn = re.findall(r'<script type="application/json">(.*?)</script>', page)
    lines = [{each.get("name") for each in json.loads(plot)["data"]} for plot in drawn[-2:]]
    keys = re.findall(r'<p class="key switches">(.*?)</p>', page)
    names = [set(re.findall(r"</i>(.*?)</button>", key)) for key in keys]
    assert [{html.unescape(name) for name in each} for each in names] == lines
    assert "grid of <Z>" in lines[0]


def test_a_page_without_javascript_says_what_is_missing_and_where_it_is(
    finished: Finished,
) -> None:
    page = page_of(finished(THREE))
    (told,) = re.findall("<noscript>(.*?)</noscript>", page)
    assert "need JavaScript" in told and "in plots/, as pictures" in told


def test_a_word_of_a_head_is_parted_only_where_there_is_no_room(finished: Finished) -> None:
    assert "<th>slow&shy;down</th>" in page_of(finished(THREE))


def test_a_comparison_says_what_its_changes_are_and_where_policies_lose(
    finished: Finished,
) -> None:
    page = page_of(finished(THREE, seeds=(1, 2)))
    assert "paired by seed: mean over 2 seeds" in page
    assert "<li>more deadlines missed than run-now+spread: carbon-time (+1.00 ±0.00)</li>" in page
    assert '<td class="worse">1</td>' in page
    assert "operational and location-based" in page


def test_a_comparison_in_which_nobody_loses_says_so(finished: Finished) -> None:
    page = page_of(finished({"spread": (0.0, 600.0), "bin-pack": (0.0, 600.0)}))
    assert "No policy is worse than the baseline in any figure." in page


def test_one_seed_has_no_interval_and_says_so(finished: Finished) -> None:
    page = page_of(finished(THREE))
    assert "with one seed, so without an interval" in page
    assert "NaN" not in without_plotly(page)


def test_one_policy_is_reported_by_itself(finished: Finished) -> None:
    run = finished({"carbon-time": (3600.0, 7200.0)})
    page = page_of(run)
    assert "What changed" not in page
    assert "1 of 2, 1 missed" in page
    assert {path.stem for path in (run.folder / "plots").iterdir()} == {"power", "waits"}


def test_plots_for_papers_are_svg_and_png(finished: Finished) -> None:
    run = finished(THREE, seeds=(1, 2))
    write_run_report(run)
    for name in ("change", "pareto", "power", "waits"):
        svg = (run.folder / "plots" / f"{name}.svg").read_text(encoding="utf-8")
        assert "<svg" in svg and "</svg>" in svg
        assert (run.folder / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_plots_have_room_for_all_policies_there_are(finished: Finished) -> None:
    everybody = {policy.name: (0.0, 600.0) for policy in policies_named("all")}
    write_run_report(finished(everybody))  # Matplotlib warns, which fails here, where room is short


def test_a_report_is_drawn_again_from_a_copy_of_the_folder(
    finished: Finished, tmp_path: Path
) -> None:
    run = finished(THREE, seeds=(1, 2))
    write_run_report(run)
    copy = Path(shutil.copytree(run.folder, tmp_path / "copy"))
    shutil.rmtree(copy / "plots")
    (copy / "report.html").unlink()
    write_run_report(read_run(copy))
    for path in (Path("report.html"), *(Path("plots") / f"waits.{end}" for end in ("svg", "png"))):
        assert (copy / path).read_bytes() == (run.folder / path).read_bytes()


def test_a_report_that_could_not_be_drawn_leaves_the_one_there_was(finished: Finished) -> None:
    run = finished(THREE)
    before = write_run_report(run).read_bytes()
    with pytest.raises(ValueError, match="surrogates not allowed"):
        write_run_report(dataclasses.replace(run, summary={**run.summary, "scenario": "\udc80"}))
    assert (run.folder / "report.html").read_bytes() == before
    assert not list(run.folder.glob(".report-*"))


def test_a_folder_without_its_rows_is_refused(finished: Finished) -> None:
    run = finished(THREE)
    (run.folder / "jobs.parquet").unlink()
    with pytest.raises(BadInput, match="has no jobs.parquet"):
        write_run_report(run)


def test_rows_that_were_cut_off_are_refused(finished: Finished) -> None:
    rows = finished(THREE).folder / "jobs.parquet"
    rows.write_bytes(rows.read_bytes()[:-100])
    with pytest.raises(
        BadInput,
        match=r"jobs.parquet was changed or is damaged: .* copy the "
        "whole",
    ):
        write_run_report(read_run(rows.parent))


def test_what_is_charged_is_reported_only_where_a_job_never_ran(finished: Finished) -> None:
    all_ran = finished(THREE, name="all-ran").results
    assert "charged,\nkWh" not in texts(taken_rows(all_ran, "EUR")[0])
    assert [texts(row)[1] for row in done_rows(all_ran)[1:]] == ["2", "2", "2"]
    some = finished({"spread": (0.0, 600.0), "reject-long": (NAN, 600.0)}).results
    head, spread, rejecting = taken_rows(some, "EUR")
    assert texts(head)[1:5] == ["energy,\nkWh", "active,\nkWh", "idle,\nkWh", "charged,\nkWh"]
    # 25 W for half an hour; twice 25 W for an hour is charged; 200 W idle for three hours.
    assert texts(spread)[1:5] == ["0.65", "0.050", "0.60", "0.00"]
    assert texts(rejecting)[1:5] == ["0.68", "0.025", "0.60", "0.050"]
    assert done_rows(some)[2][1] == Cell("1 of 2", "worse")


def test_a_policy_by_itself_tells_what_is_charged_for_how_many(finished: Finished) -> None:
    run = finished({"reject-all": (NAN, NAN)})
    rows = [texts(row) for row in outcome_rows(run.results.outcomes[REJECTING][0], "EUR")]
    assert rows[0] == ["jobs done", "0 of 2"]
    charged = [value for name, value in rows if name == "  charged for 2 jobs that never ran"]
    assert charged == ["0.10", "0.010", "0.050"]  # kWh, money, kg
    page = page_of(run)
    assert "reject-all: 2 of 2 jobs never ran" in page
    assert "NaN" not in without_plotly(page)
    for alone in ((0.0, 600.0), (0.0, NAN)):
        run = finished({"spread": alone}, name=f"{alone}")
        told = [row[0] for row in outcome_rows(run.results.outcomes[SPREAD][0], "EUR")]
        assert ("  charged for 1 job that never ran" in told) == math.isnan(alone[1])


def test_a_policy_that_rejects_all_hides_no_other_policys_waits(finished: Finished) -> None:
    views = views_of(finished({"spread": (0.0, 7200.0), "reject-all": (NAN, NAN)}))
    assert views.waits.hours[-1] == pytest.approx(6600 / 3600)
    assert views.waits.share_pct[SPREAD][-1] == 100.0
    assert set(views.waits.share_pct[REJECTING]) == {0.0}


def test_where_nobody_waits_a_line_at_all_jobs_is_seen(finished: Finished) -> None:
    waits = views_of(finished({"spread": (0.0, 600.0)})).waits
    assert (waits.hours[0], waits.hours[-1]) == (0.0, 1.0)
    assert set(waits.share_pct[SPREAD]) == {100.0}


def test_a_job_that_never_ran_leaves_the_plots_finite(finished: Finished) -> None:
    views: Any = views_of(finished({"spread": (0.0, NAN), "carbon-time": (3600.0, 600.0)}))
    assert np.isfinite(views.power[SPREAD].values).all()
    assert np.isfinite(views.waits.share_pct[SPREAD]).all()
