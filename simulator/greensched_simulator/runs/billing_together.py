"""Bills the schedules of several policies for the same time, so that they can be compared."""

from collections.abc import Sequence

from greensched_simulator.runs.outcome import Outcome, outcome_of, outcome_without_bill
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import MissingData, bill_of, billed_until_s
from greensched_simulator.world.world import World


def outcomes_together(world: World, schedules: Sequence[Schedule]) -> tuple[Outcome, ...]:
    """Return the outcomes of a world's schedules, billed until the last job of any ends.

    If a grid has no data for a part of that time, those schedules have no bill that could not be
    billed alone, else those that last longest; the time ends without them. Raises MissingData if no
    schedule can be billed.
    """
    alone_s = [billed_until_s(world, schedule) for schedule in schedules]
    # The longest first: they are most likely to lack data, and then the others need not be tried.
    billed = sorted(range(len(schedules)), key=lambda place: -alone_s[place])
    while True:
        until_s = alone_s[billed[0]]
        try:
            found = {
                place: outcome_of(
                    world, schedules[place], bill_of(world, schedules[place], until_s), until_s
                )
                for place in billed
            }
        except MissingData:
            left = [place for place in billed if _has_data(world, schedules[place], alone_s[place])]
            if len(left) == len(billed):
                left = [place for place in billed if alone_s[place] < until_s]
            if not left:
                raise
            billed = left
        else:
            break
    return tuple(
        found[place] if place in found else outcome_without_bill(world, schedule)
        for place, schedule in enumerate(schedules)
    )


def _has_data(world: World, schedule: Schedule, until_s: float) -> bool:
    """Return whether the grids have all data for a schedule's own bill."""
    try:
        outcome_of(world, schedule, bill_of(world, schedule, until_s), until_s)
    except MissingData:
        return False
    return True
