"""Rows on how long jobs took, how full the cluster was, and how long decisions took."""

from collections.abc import Iterator

from greensched_core.units import SECONDS_PER_HOUR
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import ResultRow, amount, count, short
from greensched_simulator.results.comparison import Results, mean_outcome
from greensched_simulator.runs.outcome import Outcome

_MICROSECONDS = 1e6  # in a second


def completion_lines(outcome: Outcome) -> Iterator[ResultRow]:
    """Yield a line for each figure of one run."""
    if outcome.jobs_delayed:
        yield "planned for later", f"{count(outcome.jobs_delayed)} of {count(outcome.jobs)}"
        yield "  by, h: mean", amount(outcome.delay_mean_s / SECONDS_PER_HOUR)
    yield "completion time, h: mean", amount(outcome.completion_mean_s / SECONDS_PER_HOUR)
    yield "  median", amount(outcome.completion_median_s / SECONDS_PER_HOUR)
    yield "  95th percentile", amount(outcome.completion_p95_s / SECONDS_PER_HOUR)
    yield "  99th percentile", amount(outcome.completion_p99_s / SECONDS_PER_HOUR)
    yield "makespan, h", amount(outcome.makespan_s / SECONDS_PER_HOUR)
    yield "throughput, jobs/h", amount(outcome.throughput_jobs_per_h)
    for name, mean, peak in _utilisation(outcome, has_gpus=outcome.gpu_utilisation_peak > 0.0):
        yield f"{name} requested, %: mean", amount(mean)
        yield "  peak", amount(peak)


def decision_lines(results: Results, policy: Policy) -> Iterator[ResultRow]:
    """Yield a line with the time that a decision took, if it was measured."""
    if policy in results.decision_s:
        yield "a decision, µs", amount(results.decision_s[policy] * _MICROSECONDS)


def how_completed(results: Results) -> str:
    """Return what the figures of `completion_rows` are."""
    texts = list[str]()
    every = (outcome for own in results.outcomes.values() for outcome in own)
    if any(outcome.jobs_never_ran for outcome in every):
        texts.append("Jobs that never ran count as started when the billed time ends.")
    texts.append(
        "Shares of CPUs, memory and GPUs are what running work requests of all nodes, over the "
        "billed time."
    )
    if results.decision_s:
        texts.append(
            "The time of a decision is the engine's for all that it did, divided by its "
            "decisions; it differs from run to run."
        )
    return " ".join(texts)


def completion_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy; means over seeds.

    GPUs have columns if any was used, decisions if their time was measured.
    """
    means = {policy: mean_outcome(results.outcomes[policy]) for policy in results.policies}
    has_gpus = any(mean.gpu_utilisation_peak > 0.0 for mean in means.values())
    is_timed = bool(results.decision_s)
    rows: list[ResultRow] = [
        ("policy", "planned\nlater, %", "completion\ntime, h", "median", "95 %", "99 %",
         "makespan,\nh", "jobs/h", "CPU,\n%", "peak", "memory,\n%", "peak",
         *(("GPUs,\n%", "peak") if has_gpus else ()),
         *(("a decision,\nµs",) if is_timed else ()))
    ]  # fmt: skip
    for policy, mean in means.items():
        times_s = (
            mean.completion_mean_s, mean.completion_median_s, mean.completion_p95_s,
            mean.completion_p99_s, mean.makespan_s,
        )  # fmt: skip
        full = (each for _, *pair in _utilisation(mean, has_gpus=has_gpus) for each in pair)
        decision_us = results.decision_s.get(policy, float("nan")) * _MICROSECONDS
        figures = (
            100 * mean.jobs_delayed / mean.jobs,
            *(each / SECONDS_PER_HOUR for each in times_s),
            mean.throughput_jobs_per_h,
            *full,
            *((decision_us,) if is_timed else ()),
        )
        rows.append((policy.label, *map(short, figures)))
    return rows


def _utilisation(outcome: Outcome, *, has_gpus: bool) -> Iterator[tuple[str, float, float]]:
    """Yield name, mean and peak of each resource, in %."""
    yield "CPU", 100 * outcome.cpu_utilisation_mean, 100 * outcome.cpu_utilisation_peak
    yield "memory", 100 * outcome.memory_utilisation_mean, 100 * outcome.memory_utilisation_peak
    if has_gpus:
        yield "GPUs", 100 * outcome.gpu_utilisation_mean, 100 * outcome.gpu_utilisation_peak
