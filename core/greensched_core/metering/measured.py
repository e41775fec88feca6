"""Measured watts and utilisation of nodes, read from Prometheus outside of requests."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from greensched_core.errors import SignalUnavailable
from greensched_core.metering.node_readings import (
    measured_gpu_watts,
    node_utilisation,
    node_watts,
    queries,
)
from greensched_core.metering.prometheus import PrometheusApi, PrometheusUnreachable, Sample
from greensched_core.signals.readings import Reading

_AT_ONCE = 4  # concurrent queries; Prometheus runs 20 at a time for all its clients


@dataclass(frozen=True, slots=True)
class MeasuredPower:
    """The readings of all meters at one time; a node without a meter is absent."""

    read_at: float  # seconds since the Unix epoch, by our clock
    watts: Mapping[str, Reading]  # by node name
    utilisation: Mapping[str, Reading]  # 0 … 1, by node name
    gpu_watts: Mapping[str, Reading]  # of the GPUs alone, by node name
    faults: tuple[str, ...] = ()  # queries that failed


def _no_cores(node: str) -> None:
    return None


class PowerReader:
    """Reads all meters from one Prometheus server."""

    def __init__(
        self,
        prometheus: PrometheusApi,
        *,
        window_s: float = 120.0,
        cpu_cores: Callable[[str], float | None] = _no_cores,
    ) -> None:
        """Rates are means over `window_s`; `cpu_cores` returns the CPUs of a node."""
        self._prometheus = prometheus
        self._queries = queries(window_s)
        self._cpu_cores = cpu_cores

    async def read(self, now: float) -> MeasuredPower:
        """Return the readings at `now`; raise SignalUnavailable if all queries failed."""
        gate = asyncio.Semaphore(_AT_ONCE)
        unreachable: PrometheusUnreachable | None = None

        async def ask(query: str) -> list[Sample] | SignalUnavailable:
            nonlocal unreachable
            async with gate:
                if unreachable is not None:
                    return unreachable
                try:
                    return await self._prometheus.instant(query)
                except PrometheusUnreachable as fault:
                    unreachable = fault
                    return fault
                except SignalUnavailable as fault:
                    return fault

        answers = await asyncio.gather(*(ask(query) for query in self._queries.values()))
        samples: dict[str, list[Sample]] = {}
        faults: list[str] = []
        for name, answer in zip(self._queries, answers, strict=True):
            if isinstance(answer, SignalUnavailable):
                faults.append(f"{name}: {answer}")
            else:
                samples[name] = answer
        if not samples:
            raise SignalUnavailable(faults[0])
        return MeasuredPower(
            read_at=now,
            watts=node_watts(samples),
            utilisation=node_utilisation(samples, self._cpu_cores),
            gpu_watts=measured_gpu_watts(samples),
            faults=tuple(faults),
        )
