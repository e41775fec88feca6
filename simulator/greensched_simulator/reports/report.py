"""The report of a run, from its folder alone: a page, and the plots for papers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.policy import Policy
from greensched_simulator.reports.interactive import (
    change_figures,
    pareto_figures,
    power_figure,
    waits_figure,
)
from greensched_simulator.reports.looks import OTHERS_COLOUR, Look, looks, zone_colours, zone_label
from greensched_simulator.reports.page import (
    heading,
    key,
    listed,
    page,
    paragraph,
    plots,
    section,
    switches,
    table,
)
from greensched_simulator.reports.printed import write_run_plots
from greensched_simulator.reports.views import SHOWN_PCT, Views, drawn_first, views_of
from greensched_simulator.results.billed_time import how_long_billed
from greensched_simulator.results.cells import ResultRow
from greensched_simulator.results.comparison import Results
from greensched_simulator.results.completion_tables import (
    completion_rows,
    decision_lines,
    how_completed,
)
from greensched_simulator.results.optional_metrics import supply_rows
from greensched_simulator.results.run_folder import FinishedRun
from greensched_simulator.results.tables import (
    HOW_LEVERS,
    captured_rows,
    change_rows,
    done_rows,
    embodied_text,
    how_captured,
    how_compared,
    lever_rows,
    losses,
    outcome_rows,
    taken_rows,
)

_PICTURES = "The same plots are in this page's folder, in plots/, as pictures."
REPORT, PLOTS = "report.html", "plots"


def write_run_report(run: FinishedRun) -> Path:
    """Write page and plots into the run's folder, each file atomically; return the page.

    Raises BadInput if a file of the folder is missing.
    """
    views, currency = views_of(run), str(run.summary["currency"])
    body = "\n".join(_sections(run, views, currency))
    with TemporaryDirectory(prefix=".report-", dir=run.folder) as drawn:
        fresh = Path(drawn)
        write_run_plots(fresh / PLOTS, views, run.results, currency)
        text = page(f"GreenSched: {run.summary['scenario']}", body, _PICTURES)
        (fresh / REPORT).write_text(text, encoding="utf-8")
        (run.folder / PLOTS).mkdir(exist_ok=True)
        for path in (*(fresh / PLOTS).iterdir(), fresh / REPORT):
            path.replace(run.folder / path.relative_to(fresh))
    return run.folder / REPORT


def _sections(run: FinishedRun, views: Views, currency: str) -> Iterator[str]:
    results = run.results
    look = looks(results.policies, results.baseline, views.marked)
    yield heading(_title(run))
    yield paragraph(
        f"{run.summary['description']} A simulation: energy comes from the nodes' power curves, "
        f"not from meters; carbon is operational and location-based. {embodied_text(results)}",
        "lead",
    )
    if len(results.policies) == 1:
        outcome = results.outcomes[results.policies[0]][0]
        yield section(
            "Work done, energy, cost and carbon",
            table(
                [
                    ("", ""),
                    *outcome_rows(outcome, currency),
                    *decision_lines(results, results.policies[0]),
                ]
            ),
        )
    else:
        yield from _compared(run, views, look)
    yield _power_section(results, views, look)
    yield section(
        "How long jobs waited",
        paragraph(
            "Time from ready to start, all seeds together; drawn up to where "
            f"{SHOWN_PCT:g} % of each policy's jobs have started, or of those that ever do. A name "
            "shows and hides its line."
        ),
        switches({policy.label: each for policy, each in look.items()}),
        plots([waits_figure(views.waits, look)]),
    )
    yield section("What was run", table([("", ""), *_facts(run)], "facts"))


def _power_section(results: Results, views: Views, look: Mapping[Policy, Look]) -> str:
    drawn = drawn_first(results)
    lines = {policy.label: look[policy] for policy in views.power}
    off = [policy.label for policy in views.power if policy not in drawn]
    return section(
        "Power over time, and the grid",
        paragraph(
            f"Hourly means of the whole cluster with seed {results.seeds[0]}, and below them each "
            "zone's grid. A name shows and hides its line."
        ),
        switches({**lines, **_zone_lines(views)}, off),
        plots([power_figure(views.power, views.grid, look, drawn)]),
    )


def _zone_lines(views: Views) -> dict[str, Look]:
    by_zone = zone_colours(list(views.grid))
    return {zone_label(zone): Look(colour, "solid") for zone, colour in by_zone.items()}


def _compared(run: FinishedRun, views: Views, look: Mapping[Policy, Look]) -> Iterator[str]:
    results, currency = run.results, str(run.summary["currency"])
    yield from _of_all(results, currency)
    if results.baseline is not None:
        yield section(
            "What changed",
            paragraph(how_compared(results)),
            paragraph(how_long_billed(results)),
            table(change_rows(results)),
            plots(change_figures(views)),
        )
        shares = captured_rows(results)
        if shares[1:]:
            yield section(
                "Share of the possible saving", paragraph(how_captured(results)), table(shares)
            )
        levers = lever_rows(results)
        if levers[1:]:
            yield section("What each lever adds", paragraph(HOW_LEVERS), table(levers))
        lost = losses(results)
        yield section(
            "Where policies lose",
            listed(lost)
            if lost
            else paragraph("No policy is worse than the baseline in any figure."),
        )
    if views.points:
        yield _against_each_other(views, look, currency)


def _of_all(results: Results, currency: str) -> Iterator[str]:
    """Yield the sections with a line for each policy, the baseline like all others."""
    yield section(
        "Work done and waits",
        paragraph("Means over seeds."),
        table(done_rows(results)),
    )
    yield section(
        "Completion times, and how full the cluster was",
        paragraph(f"Means over seeds. {how_completed(results)}"),
        table(completion_rows(results), "figures many"),
    )
    yield section("Energy, cost and carbon", table(taken_rows(results, currency)))
    supply = supply_rows(results)
    if supply[1:]:
        yield section("Energy by source, in zones with panels", table(supply))


def _against_each_other(views: Views, look: Mapping[Policy, Look], currency: str) -> str:
    return section(
        "Carbon against delay, missed deadlines and cost",
        paragraph(
            "Points at the lower left are best. A filled point: no other policy is better in "
            "both; a policy that does less work than the baseline never is. Hover over a point for "
            "its policy and figures. Where a few outliers would squeeze all others, the scale is "
            "stretched around most points: read the ticks."
        ),
        key(_key(views, look)),
        plots(pareto_figures(views, look, currency)),
    )


def _key(views: Views, look: Mapping[Policy, Look]) -> dict[str, str]:
    named = {policy.label: look[policy].colour for policy in views.marked}
    others = len(look) - len(named)
    return {**named, f"{others} others": OTHERS_COLOUR} if others else named


def _title(run: FinishedRun) -> str:
    policies = run.results.policies
    compared = policies[0].name if len(policies) == 1 else f"{len(policies)} policies compared"
    return f"{run.summary['scenario']}: {compared}"


def _facts(run: FinishedRun) -> list[ResultRow]:
    summary = run.summary
    inputs = [f"{each['file']} (sha256 {each['sha256'][:12]}…)" for each in summary["inputs"]]
    facts = [
        ("scenario", f"{summary['scenario']}: {summary['jobs']:,} jobs, "
                     f"{summary['nodes']:,} nodes, zones {', '.join(summary['zones'])}"),
        ("time", f"{format_timestamp(summary['start_s'])}, "
                 f"for {format_duration(summary['length_s'])}"),
        ("policies", ", ".join(policy.name for policy in run.results.policies)),
        ("baseline", summary["baseline"] or "none"),
        ("seeds", ", ".join(map(str, run.results.seeds))),
        ("inputs", ", ".join(inputs) or "none but the scenario"),
        ("command", " ".join(summary["command"])),
        ("started", summary["started_at"]),
        ("versions", ", ".join(f"{name} {each}" for name, each in summary["versions"].items())),
    ]  # fmt: skip
    return [*facts, *(("note", note) for note in summary["notes"])]
