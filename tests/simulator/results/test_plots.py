"""What stands in plots, by its place on the page."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from greensched_simulator.reports.printed import WIDTH_IN, legend_columns

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
