"""What stands in plots, by its place on the page."""

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from greensched_simulator.policy import policies_named, policy_named
from greensched_simulator.reports.axes import scale_of
from greensched_simulator.reports.looks import (
    POLICY_COLOURS,
    looks,
)
from greensched_simulator.reports.printed import WIDTH_IN, legend_columns
from greensched_simulator.reports.views import against, views_of
from greensched_simulator.results.run_folder import FinishedRun

Finished = Callable[..., FinishedRun]
LONG = "planned-window+kubernetes-default+sleep-at-break-even"


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(["spread"], id="one"),
        pytest.param(["spread", "least-carbon", "tetris-srtf"] * 4, id="twelve-short"),
        pytest.param(["spread", "min-min", "carbon-time+sleep-at-once"] * 4, id="some-long"),
        pytest.param(["spread", LONG] * 3, id="very-long"),
    ],
)
def test_a_legend_is_no_wider_than_its_figure(labels: list[str]) -> None:
    with mpl.rc_context({"legend.fontsize": 7}):
        figure = Figure(figsize=(WIDTH_IN, 3.0))
        axes = figure.subplots()
        for label in labels:
            axes.plot(0.0, 0.0, "o", label=label)
        handles, names = axes.get_legend_handles_labels()
        legend = figure.legend(handles, names, ncols=legend_columns(names))
        figure.draw_without_rendering()
    assert legend.get_window_extent().width <= figure.bbox.width


def test_no_two_policies_of_a_whole_comparison_look_alike() -> None:
    every = policies_named("all")[:43]
    found = looks(every, every[0], [])
    assert len(every) == 43 and len(set(found.values())) == 43
    assert list(found) == list(every)


def test_who_is_marked_has_a_colour_of_its_own() -> None:
    every = policies_named("all")
    marked = every[-len(POLICY_COLOURS) :]
    found = looks(every, every[0], marked)
    assert {found[policy].colour for policy in marked} == set(POLICY_COLOURS)
    assert {found[policy].stroke for policy in marked} == {"solid"}


def test_all_are_marked_as_long_as_there_are_colours(finished: Finished) -> None:
    most = 1 + len(POLICY_COLOURS)
    names = [policy.name for policy in policies_named("all")]
    few = finished(dict.fromkeys(names[:most], (0.0, 600.0)), name="few")
    assert views_of(few).marked == list(few.results.policies)


def test_beyond_that_only_the_baseline_and_who_is_best_at_something_are(
    finished: Finished,
) -> None:
    """All but the baseline only wait longer, for nothing."""
    names = [policy.name for policy in policies_named("all")][: 2 + len(POLICY_COLOURS)]
    starts_s = {name: (float(60 * number), 600.0) for number, name in enumerate(names)}
    marked = views_of(finished(starts_s)).marked
    assert marked == [policy_named(names[0])]


@pytest.mark.parametrize(
    ("values", "stretched"),
    [
        pytest.param([1.0, 1.0, 10.0], False, id="alike-anyway"),
        pytest.param([1.0, 3.0, 10.0], False, id="just-not"),
        pytest.param([1.0, 2.7, 10.0], True, id="just-so"),
        pytest.param([20.0, 21.0, 22.0, 95.0], True, id="one-far-above"),
        pytest.param([8.0, 20.0, 21.0, 22.0, 95.0], True, id="one-above-and-one-below"),
        pytest.param([0.0, 0.0, 2.0, 3.5, 380.0], True, id="zeros"),
        pytest.param([0.0, 0.0, 0.0], False, id="nothing"),
        pytest.param([-9.0, 0.1, 0.3], True, id="below-zero"),
    ],
)
def test_an_axis_is_stretched_where_few_figures_squeeze_the_others(
    values: list[float], stretched: bool
) -> None:
    assert (scale_of(values) is not None) is stretched


@pytest.mark.parametrize("far", [pytest.param(95.0, id="above"), pytest.param(-95.0, id="below")])
def test_most_of_a_stretched_axis_is_theirs_who_were_squeezed(far: float) -> None:
    scale = scale_of([20.0, 21.0, 22.0, far])
    assert scale is not None
    low, high = scale.places([20.0, 22.0])
    first, last = scale.places(scale.ends([20.0, 22.0, far]))
    assert high - low > 0.25 * (last - first)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        pytest.param([0.0, 0.3, 0.5, 14.0], [0, 0.5, 1, 2, 5, 10], id="waits"),
        pytest.param([1.02, 1.3, 13.6], [1.1, 1.3, 1.5, 2, 3, 5, 10], id="slowdowns"),
        pytest.param([8.0, 20.0, 21.0, 22.0, 95.0], [10, 15, 20, 30, 50, 80], id="both-sides"),
    ],
)
def test_ticks_of_a_stretched_axis_are_round_and_can_be_read(
    values: list[float], ticks: list[float]
) -> None:
    scale = scale_of(values)
    assert scale is not None
    found = scale.ticks(values)
    assert found == ticks
    assert np.all(np.diff(scale.places(found)) > 0.1), "far enough apart to be read"


def test_deadlines_missed_are_drawn_where_there_are_any(finished: Finished) -> None:
    run = finished({"spread": (0.0, 600.0), "carbon-time": (3600.0, 7200.0)})
    shown = views_of(run).points
    assert "missed" in against(shown, "EUR")
    assert "missed" not in against([point._replace(missed=0.0) for point in shown], "EUR")
