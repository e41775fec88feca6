"""The parts of a page: one HTML file that needs no network, with plots and tables."""

import html
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from greensched_simulator.reports.looks import Look
from greensched_simulator.results.cells import Cell, ResultRow

HEIGHT = 430  # of a plot, in pixels; page.html says the same


def page(title: str, body: str, remark: str = "") -> str:
    """Return the page, with Plotly included; plots are drawn after the layout.

    remark: a sentence for readers without JavaScript, such as where else the plots are.
    """
    text = (files("greensched_simulator.reports") / "page.html").read_text(encoding="utf-8")
    for mark, part in {
        "@TITLE@": html.escape(title),
        "@REMARK@": html.escape(f" {remark}" if remark else ""),
        "@PLOTLY@": get_plotlyjs(),
        "@BODY@": body,
    }.items():
        text = text.replace(mark, part, 1)
    return text


def heading(text: str) -> str:
    """Return the page's heading."""
    return f"<h1>{html.escape(text)}</h1>"


def section(title: str, *parts: str) -> str:
    """Return a section of the page with its title."""
    return f"<section><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def plots(figures: Iterable[go.Figure]) -> str:
    """Return figures side by side, or below each other on a narrow page."""
    return f'<div class="plots">{"".join(map(_plot, figures))}</div>'


def styled(figure: go.Figure, height: int = HEIGHT) -> go.Figure:
    """Return a figure in the common style."""
    return figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 60, "t": 40, "b": 50},
        legend={"orientation": "h", "y": -0.18},
        font={"family": "system-ui, sans-serif", "size": 13},
    )


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{html.escape(text)}</p>"


def listed(lines: Sequence[str]) -> str:
    """Return lines of plain text as a list."""
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def key(colours: Mapping[str, str]) -> str:
    """Return a legend of colours for several plots."""
    names = (f"<span>{_dot(colour)}{html.escape(name)}</span>" for name, colour in colours.items())
    return f'<p class="key">{"".join(names)}</p>'


def switches(lines: Mapping[str, Look], off: Collection[str] = ()) -> str:
    """Return a legend of lines whose names show and hide traces of the next plot.

    Plotly's legend takes most of a plot on a phone.
    """
    names = (
        f'<button type="button" aria-pressed="{"false" if name in off else "true"}">'
        f"{_stroke(look)}{html.escape(name)}</button>"
        for name, look in lines.items()
    )
    return f'<p class="key switches">{"".join(names)}</p>'


def table(rows: Sequence[ResultRow], kind: str = "figures") -> str:
    """Return a table; the first row is its head, empty for a table without one."""
    head, *body = rows
    lines = [_line("th", head) if any(head) else "", *(_line("td", row) for row in body)]
    return f'<div class="wide"><table class="{kind}">{"".join(lines)}</table></div>'


def _dot(colour: str) -> str:
    return f'<i style="background: {colour}"></i>'


def _stroke(look: Look) -> str:
    return f'<i class="line" style="border-top: 3px {look.stroke} {look.colour}"></i>'


def _plot(figure: go.Figure) -> str:
    drawn = str(figure.to_json()).replace("<", "\\u003c")  # or `</script>` in it ends the script
    height = figure.layout.height or HEIGHT
    style = "" if height == HEIGHT else f' style="height: {height}px"'
    return f'<div class="plot"{style}><script type="application/json">{drawn}</script></div>'


def _line(tag: str, row: ResultRow) -> str:
    return "<tr>" + "".join(_cell(tag, cell) for cell in row) + "</tr>"


def _cell(tag: str, cell: Cell | str) -> str:
    text, tone = cell if isinstance(cell, Cell) else (cell, "")
    named = f' class="{tone}"' if tone else ""
    # A soft break is used only if there is no room.
    shown = html.escape(text).replace("-\n", "&shy;")
    return f"<{tag}{named}>{shown}</{tag}>"
