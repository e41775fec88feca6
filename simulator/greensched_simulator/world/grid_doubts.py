"""Finds doubtful carbon and price files; each doubt is a sentence of a run's notes.

`tests/simulator/world/test_doubtful_carbon.py` shows which real grids each check finds doubtful.
`docs/simulator.md` lists the checks that were left out because they separated none.
"""

import re
from collections.abc import Iterator

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.grid_files import Series, read_series
from greensched_simulator.scenario.model import CarbonFile, PriceFile, Scenario
from greensched_simulator.world.zone_steps import column_of

# A carbon file with at least this share of such rows is doubtful.
_ESTIMATED, _SMOOTH = 0.05, 0.5
_HOUR_S, _HOURS_A_DAY, _DAYS_ALIKE = 3600.0, 24, 30
_FEWEST_HOURS = 365 * 24  # with fewer, the correlations differ by chance
# Sound pairs correlate best within two hours of each other: plants take time to follow prices.
_NEAR_H, _FARTHEST_H = 2, 12
_LEAST_CORRELATION, _CLEARLY = 0.06, 2.0  # of the best shift, and times that of all near ones
_NO_INTENSITY = re.compile(r"pct|percent|%|(?<![a-z])share(?![a-z])", re.I)
_KINDS = {
    "direct": re.compile(r"(?<!in)direct", re.I),
    "life-cycle": re.compile(r"(?<![a-z])lca(?![a-z])|life.?cycle", re.I),
}


def notes_on_files(scenario: Scenario) -> Iterator[str]:
    """Yield the doubts about the scenario's carbon and price files."""
    yield from _kinds_of_carbon(scenario)
    for zone, grid in scenario.grids.items():
        if not isinstance(grid.carbon, CarbonFile):
            continue
        if _NO_INTENSITY.search(grid.carbon.column):
            yield (
                f"{zone}: its carbon is read from the column {grid.carbon.column} in "
                f"{grid.carbon.unit}, but the name suggests a share"
            )
        carbon = read_series(grid.carbon.file, column_of(grid.carbon))
        for share, most, what in (
            (
                carbon.estimated_share,
                _ESTIMATED,
                "are marked as estimated: do not claim a saving from it",
            ),
            (carbon.repeated_share, _SMOOTH, "repeat the one before: it looks smoothed"),
        ):
            if share > most:
                yield f"{zone}: {share:.0%} of the rows of its carbon file {what}"
        if isinstance(grid.price, PriceFile):
            shift_h = hours_apart(carbon, read_series(grid.price.file, column_of(grid.price)))
            if shift_h:
                direction = "later" if shift_h > 0 else "earlier"
                yield (
                    f"{zone}: its price follows the pattern of its carbon {abs(shift_h)} h "
                    f"{direction}: one of the two files may be in another time zone than it "
                    f"says, or of another place"
                )


def _kinds_of_carbon(scenario: Scenario) -> Iterator[str]:
    """Yield which zones' carbon is direct and which life-cycle, if the columns' names say so."""
    for what in ("carbon", "marginal"):
        sources = {zone: getattr(grid, what) for zone, grid in scenario.grids.items()}
        found = {
            kind: [
                zone
                for zone, source in sources.items()
                if isinstance(source, CarbonFile) and pattern.search(source.column)
            ]
            for kind, pattern in _KINDS.items()
        }
        kinds = [f"{kind} in {', '.join(zones)}" for kind, zones in found.items() if zones]
        if kinds:
            mixed = ": the two cannot be compared; give all zones the same kind" * (len(kinds) > 1)
            name = what if what == "carbon" else f"{what} carbon"
            yield f"{name} is {' and '.join(kinds)}, as its column says{mixed}"


def hours_apart(carbon: Series, price: Series) -> int:
    """Return by how many hours a zone's price seems to precede its carbon; 0: no shift found.

    A shift is 3 to 12 h at which the two correlate clearly better than within 2 h. Also 0 if the
    files overlap by less than a year.
    """
    begin_s = max(carbon.times_s[0], price.times_s[0])
    hours = int((min(carbon.times_s[-1], price.times_s[-1]) - begin_s) // _HOUR_S)
    if hours < _FEWEST_HOURS:
        return 0
    ranks = [
        _ranks(_changes(each, begin_s + _HOUR_S * np.arange(hours))) for each in (carbon, price)
    ]
    shifts = range(-_FARTHEST_H, _FARTHEST_H + 1)
    found = {shift: _correlation(ranks[0], ranks[1], shift) for shift in shifts}
    best = max(found, key=lambda shift: found[shift])
    near = max(found[shift] for shift in shifts if abs(shift) <= _NEAR_H)
    is_clear = found[best] >= max(_LEAST_CORRELATION, _CLEARLY * near)
    return best if abs(best) > _NEAR_H and is_clear else 0


def _changes(series: Series, times_s: Floats) -> Floats:
    """Return the hourly changes minus the mean of that hour of day in that month.

    The usual day looks alike in all zones; only the deviations distinguish them.
    """
    place = np.searchsorted(series.times_s, times_s, side="right") - 1
    changes = np.diff(series.values[place])
    block = _HOURS_A_DAY * _DAYS_ALIKE
    whole = changes[: changes.size // block * block].reshape(-1, _DAYS_ALIKE, _HOURS_A_DAY)
    is_known = np.isfinite(whole)
    sums = np.where(is_known, whole, 0.0).sum(axis=1, keepdims=True)
    usual = sums / np.maximum(is_known.sum(axis=1, keepdims=True), 1)
    return np.asarray((whole - usual).ravel(), np.float64)


def _ranks(values: Floats) -> Floats:
    """Return centred ranks, so that spikes do not dominate; 0 where there is no data."""
    from scipy.stats import rankdata  # a second to import; no other part of a run needs it

    is_known = np.isfinite(values)
    ranks = np.zeros(values.size)
    ranks[is_known] = rankdata(values[is_known])
    ranks[is_known] -= ranks[is_known].mean() if is_known.any() else 0.0
    return ranks


def _correlation(carbon: Floats, price: Floats, shift: int) -> float:
    """Return Spearman's correlation of carbon with the price `shift` hours before."""
    ahead, behind = max(shift, 0), max(-shift, 0)
    one, other = carbon[ahead : carbon.size - behind], price[behind : price.size - ahead]
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / scale if scale > 0.0 else 0.0
