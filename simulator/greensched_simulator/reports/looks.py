"""The colours and strokes of policies, the same in all plots."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import ConfidenceInterval, tone_of

BASELINE_COLOUR = "#5f6b7a"
POLICY_COLOURS = (
    "#27784b", "#2b7bba", "#e3a008", "#c0392b", "#8e44ad", "#16a085", "#d35400", "#3b5bdb",
    "#ad1457", "#7a9a01", "#795548", "#00838f", "#f06595", "#1f2933",
)  # fmt: skip
OTHERS_COLOUR = "#c3cad3"  # of policies that a plot does not distinguish
STROKES = ("solid", "dashed", "dotted")  # names in CSS and Matplotlib
# None is a policy's: a plot of power has lines of both.
ZONE_COLOURS = ("#b45309", "#0ea5e9", "#5b4636", "#c026d3", "#0d9488", "#be123c")
_LONGEST_LINE = 24  # characters
FRONT_COLOUR = "#9aa5b1"
# Green and red repeat the position left and right of zero, which alone distinguishes them.
TONE_COLOURS = {"better": "#27784b", "worse": "#b42318", "": "#5f6b7a"}


class Look(NamedTuple):
    """The colour and stroke of a policy's line."""

    colour: str
    stroke: str  # one of STROKES


def looks(
    policies: Sequence[Policy], baseline: Policy | None, marked: Sequence[Policy]
) -> Mapping[Policy, Look]:
    """Return each policy's look, in the policies' order; up to 42 and the baseline are distinct.

    Marked policies get different colours first, so that their points are distinct too.
    """
    turns = [each for each in dict.fromkeys((*marked, *policies)) if each != baseline]
    found = {
        policy: Look(
            POLICY_COLOURS[number % len(POLICY_COLOURS)],
            STROKES[number // len(POLICY_COLOURS) % len(STROKES)],
        )
        for number, policy in enumerate(turns)
    }
    if baseline is not None:
        found[baseline] = Look(BASELINE_COLOUR, "solid")
    return {policy: found[policy] for policy in policies}


def zone_colours(zones: Sequence[str]) -> Mapping[str, str]:
    """Return each zone's colour; after six zones the colours repeat."""
    return {zone: ZONE_COLOURS[number % len(ZONE_COLOURS)] for number, zone in enumerate(zones)}


def zone_label(zone: str) -> str:
    """Return the label of a zone's line, distinct from policies with the same colour."""
    return f"grid of {zone}"


def change_colour(percent: ConfidenceInterval, *, does_less: bool = False) -> str:
    """Return the colour of a change: better, worse, or neither, as `tone_of` says."""
    return TONE_COLOURS[tone_of(percent, does_less=does_less)]


def in_two_lines(label: str) -> str:
    """Return a policy's label, with a line break at the plus that gives the shortest lines.

    Short labels are unchanged. With three plots in a row there is no room for long ones.
    """
    parts = label.split("+")
    if len(label) <= _LONGEST_LINE or len(parts) == 1:
        return label
    broken = [("+".join(parts[:at]), "+" + "+".join(parts[at:])) for at in range(1, len(parts))]
    return "<br>".join(min(broken, key=lambda lines: max(map(len, lines))))


def hours_between_ticks(last_h: float) -> int:
    """Return a distance of ticks in hours that gives a handful of ticks, if possible in days."""
    return next(
        (each for each in (1, 3, 6, 12) if last_h <= 8 * each), 24 * (1 + int(last_h // 192))
    )
