"""What work that is paused has done, and how long the rest of it takes.

Functions of numbers: the operator calls them, and the simulator's engine compiles them.
"""

_LEAST_S = 1e-9


def done_work_s(before_s: float, ran_s: float, speed: float, starting_s: float) -> float:
    """Return the part of its runtime that work has done which has run for `ran_s` on a node.

    `before_s` was done before, and no work is done for `starting_s` of the run.
    """
    return before_s + max(ran_s * speed - starting_s, 0.0)


def left_work_s(whole_s: float, done_s: float, resume_s: float) -> float:
    """Return how long the rest of work takes, with the start-up of a resumed run."""
    return max(whole_s - done_s, 0.0) + resume_s


def resumed_run_s(left_s: float, whole_s: float, longest_s: float, margin_s: float) -> float:
    """Return the time that must be left before a deadline for the rest of work.

    `longest_s` is what the whole takes on the slowest node, and `margin_s` is the whole's too.
    """
    return left_s * longest_s / whole_s + margin_s


def restarts_left(whole_s: float, resume_s: float, pauses: float) -> float:
    """Return how often work may still restart: all its restarts take no longer than the work."""
    return max(whole_s / max(resume_s, _LEAST_S) - pauses, 0.0)
