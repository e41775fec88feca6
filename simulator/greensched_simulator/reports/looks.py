"""How policies look, the same in all plots."""

from collections.abc import Mapping, Sequence

from greensched_simulator.comparison import Interval
from greensched_simulator.policy import Policy
from greensched_simulator.tables import tone_of

BASELINE_COLOUR = "#5f6b7a"
POLICY_COLOURS = (
    "#27784b", "#2b7bba", "#e3a008", "#c0392b", "#8e44ad", "#16a085", "#d35400", "#3b5bdb",
    "#ad1457", "#7a9a01", "#795548", "#00838f",
)  # fmt: skip
ZONE_COLOURS = ("#e3a008", "#2b7bba", "#5b4636", "#8e44ad", "#16a085", "#c0392b")
_LONGEST_LINE = 24  # characters
FRONT_COLOUR = "#9aa5b1"
# Green and red beside a position left and right of zero: nobody needs to tell the colours apart.
TONE_COLOURS = {"better": "#27784b", "worse": "#b42318", "": "#5f6b7a"}


def colours(policies: Sequence[Policy], baseline: Policy | None) -> Mapping[Policy, str]:
    """Return each policy's colour; after twelve they come again."""
    others = [policy for policy in policies if policy != baseline]
    found = {
        policy: POLICY_COLOURS[number % len(POLICY_COLOURS)] for number, policy in enumerate(others)
    }
    return found if baseline is None else {baseline: BASELINE_COLOUR, **found}


def zone_colours(zones: Sequence[str]) -> Mapping[str, str]:
    """Return each zone's colour; after six they come again."""
    return {zone: ZONE_COLOURS[number % len(ZONE_COLOURS)] for number, zone in enumerate(zones)}


def change_colour(percent: Interval) -> str:
    """Return the colour of a change: better, worse, or neither beyond doubt."""
    return TONE_COLOURS[tone_of(percent)]


def in_two_lines(label: str) -> str:
    """Return a policy's label with a line break at the plus where that leaves the shortest lines.

    Short ones stay as they are; beside three plots in a row there is no room for long ones.
    """
    parts = label.split("+")
    if len(label) <= _LONGEST_LINE or len(parts) == 1:
        return label
    broken = [("+".join(parts[:at]), "+" + "+".join(parts[at:])) for at in range(1, len(parts))]
    return "<br>".join(min(broken, key=lambda lines: max(map(len, lines))))


def is_wide(values: Sequence[float]) -> bool:
    """Tell whether some figures, all positive, need a logarithmic axis to be told apart."""
    return min(values) > 0 and max(values) > 20 * min(values)


def hours_between_ticks(last_h: float) -> int:
    """Return a distance of ticks in hours that makes a handful of them, days if it can."""
    return next(
        (each for each in (1, 3, 6, 12) if last_h <= 8 * each), 24 * (1 + int(last_h // 192))
    )
