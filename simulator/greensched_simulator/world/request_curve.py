"""The requests of a service in each slot, and their service times."""

import math
from typing import NamedTuple

import numpy as np

from greensched_core.durations import format_duration
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.formats.request_trace import RequestLog, read_requests
from greensched_simulator.scenario.services import (
    RequestGenerator,
    Requests,
    RequestTrace,
    Service,
)
from greensched_simulator.world.response_times import Times
from greensched_simulator.world.served_models import Rates, rates_of

_DAY_S = 86_400.0


class Curve(NamedTuple):
    """Requests by slot; within a slot they come at random, at its rate."""

    begins_s: Floats  # [K+1] of the slots, and the end of the last
    requests: Floats  # [K]

    @property
    def rate_per_s(self) -> Floats:
        """Return the requests per second of each slot, [K]."""
        return self.requests / np.diff(self.begins_s)


def curve_of(service: Service, start_s: float, length_s: float, seed: int) -> Curve:
    """Return a service's requests by slots of its autoscaler; equal seeds give equal requests."""
    every_s = service.autoscaler.every
    begins_s = np.append(np.arange(0.0, length_s, every_s), length_s)
    source = service.requests
    if source.trace is not None:
        return Curve(begins_s, played(log_of(source.trace), source.trace, begins_s))
    assert source.generator is not None, "load_scenario refuses neither"
    mean = _means(source.generator, start_s, begins_s)
    return Curve(begins_s, stream(seed, f"services/{service.name}").poisson(mean).astype(float))


def log_of(trace: RequestTrace) -> RequestLog:
    """Return the requests of a scenario's trace; raise BadInput as `read_requests` does."""
    return read_requests(trace.file, skip_faulty=trace.skip_faulty)


def played(log: RequestLog, trace: RequestTrace, begins_s: Floats) -> Floats:
    """Return how many requests of a log fall into each slot, [K], stretched and multiplied."""
    round_s = log.span_s * trace.stretch
    rounds, within_s = np.divmod(begins_s, round_s)
    before = np.searchsorted(log.arrival_s * trace.stretch, within_s, side="left")
    total = np.minimum(rounds * log.arrival_s.size + before, trace.repeat * log.arrival_s.size)
    # Stretching keeps the rates, so a longer log holds more requests.
    found: Floats = np.diff(total) * trace.rate_factor * trace.stretch
    return found


def too_short(log: RequestLog, trace: RequestTrace, length_s: float) -> str:
    """Return the remedy if a log is shorter than the scenario; empty if it is long enough."""
    lasts_s = log.span_s * trace.stretch * trace.repeat
    if lasts_s >= length_s * (1 - 1e-9):
        return ""
    rounds = math.ceil(length_s / (log.span_s * trace.stretch))
    return (
        f"{trace.file.name} has requests for {format_duration(lasts_s)}, but the scenario lasts "
        f"{format_duration(length_s)}: give repeat: {rounds}, or lengthen it"
    )


def times_of(service: Service) -> Times:
    """Return the service times of a service's requests at speed 1."""
    given = service.service_time
    if given is not None:
        squared = given.variation**2
        return Times(given.mean, squared, given.mean, squared)
    rates = _rates(service)
    whole = _taken(service.requests, rates.prompt_per_s, rates.generated_per_s)
    if service.objective.of == "first-token":
        return Times(*whole, *_taken(service.requests, rates.first_prompt_per_s, math.inf))
    return Times(*whole, *whole)


def _rates(service: Service) -> Rates:
    if service.model is not None:
        return rates_of(service.model)
    tokens = service.tokens
    assert tokens is not None, "load_scenario refuses a service with neither"
    return Rates(tokens.prompt_per_s, tokens.prompt_per_s, tokens.generated_per_s)


def _taken(requests: Requests, prompt_per_s: float, generated_per_s: float) -> tuple[float, float]:
    """Return mean and squared coefficient of variation of the service times at these rates."""
    if requests.trace is not None:
        log = log_of(requests.trace)
        return _moments(log.prompt_tokens / prompt_per_s + log.generated_tokens / generated_per_s)
    assert requests.generator and requests.generator.lengths, "load_scenario refuses none"
    lengths = requests.generator.lengths
    parts = ((lengths.prompt, prompt_per_s), (lengths.generated, generated_per_s))
    mean_s = sum(length.mean / per_s for length, per_s in parts)
    variance = sum((length.variation * length.mean / per_s) ** 2 for length, per_s in parts)
    return mean_s, variance / mean_s**2


def _moments(values: Floats) -> tuple[float, float]:
    """Return mean and squared coefficient of variation."""
    mean = float(values.mean())
    return mean, float(values.var()) / mean**2 if mean > 0 else 0.0


def _means(generator: RequestGenerator, start_s: float, begins_s: Floats) -> Floats:
    """Return the mean requests of each slot: the integral of rate · (1 + swing·cos(2πt/day))."""
    turns = 2 * math.pi * (begins_s + start_s % _DAY_S - generator.peak) / _DAY_S
    wave_s = generator.daily_swing * _DAY_S / (2 * math.pi) * np.sin(turns)
    return np.maximum(generator.rate_per_s * np.diff(begins_s + wave_s), 0.0)
