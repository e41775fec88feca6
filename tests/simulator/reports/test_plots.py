"""What stands in plots, by its place on the page."""

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from greensched_simulator.policy import policies_named, policy_named
from greensched_simulator.reports.looks import (
    POLICY_COLOURS,
    is_crowded,
    linear_below,
    looks,
    stretched,
    stretched_ticks,
)
from greensched_simulator.reports.printed import WIDTH_IN, legend_columns
from greensched_simulator.reports.views import views_of
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
    ("values", "crowded"),
    [
        pytest.param([1.0, 9.0, 10.0], False, id="one-is-small"),
        pytest.param([1.0, 1.0, 10.0], False, id="just-not"),
        pytest.param([1.0, 1.0, 10.1], True, id="just-so"),
        pytest.param([0.0, 0.0, 1.0], True, id="zeros"),
        pytest.param([0.0, 0.0, 0.0], False, id="nothing"),
        pytest.param([-1.0, 0.1, 9.0], False, id="below-zero"),
    ],
)
def test_an_axis_is_stretched_only_where_half_of_all_lie_near_zero(
    values: list[float], crowded: bool
) -> None:
    assert is_crowded(values) is crowded


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        pytest.param([0.0, 0.002, 6.6], [0, 0.01, 0.03, 0.1, 0.3, 1, 3], id="waits"),
        pytest.param([1.02, 1.3, 13.6], [1, 3, 10], id="slowdowns"),
    ],
)
def test_ticks_go_from_below_the_figures_to_the_largest(
    values: list[float], ticks: list[float]
) -> None:
    width = linear_below(values)
    assert stretched_ticks(values, width) == ticks
    assert np.all(np.diff(stretched(ticks, width)) > 0.3), "far enough apart to be read"
