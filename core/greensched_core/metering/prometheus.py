"""Prometheus' HTTP API: instant and range queries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import httpx
import msgspec

from greensched_core.errors import SignalUnavailable

Found = TypeVar("Found")

_MOST_ERROR_CHARACTERS = 200


class PrometheusUnreachable(SignalUnavailable):
    """Prometheus gives no answer at all, so further queries would fail too."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector."""

    labels: dict[str, str]
    value: float  # may be NaN or infinite
    taken_at: float  # when the query was evaluated, seconds since the Unix epoch


@dataclass(frozen=True, slots=True)
class Track:
    """One series of a range query."""

    labels: dict[str, str]
    points: tuple[tuple[float, float], ...]  # seconds since the Unix epoch, value; in order of time


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, tag_field="resultType", tag="vector"):
    result: list[_Series]


class _RangeSeries(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Matrix(msgspec.Struct, tag_field="resultType", tag="matrix"):
    result: list[_RangeSeries]


_Data = _Vector | _Matrix


class _Answer(msgspec.Struct):
    status: str
    data: _Data | None = None
    errorType: str = ""
    error: str = ""


_ANSWER = msgspec.json.Decoder(_Answer)


class PrometheusApi:
    """Queries one Prometheus server; the caller opens and closes the HTTP client."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, *, timeout_s: float = 5.0) -> None:
        self._http = http
        self._url = f"{base_url.rstrip('/')}/api/v1"
        self._timeout_s = timeout_s

    async def instant(self, query: str) -> list[Sample]:
        """Return the samples of a PromQL query now; raise SignalUnavailable with the reason."""
        answer = await self._ask("query", {"query": query})
        return _read(answer, _samples)

    async def over(self, query: str, begin_s: float, until_s: float, step_s: float) -> list[Track]:
        """Return the values of a PromQL query at each step; times in seconds since the Unix epoch.

        Raises SignalUnavailable with the reason.
        """
        times = {"start": f"{begin_s:.3f}", "end": f"{until_s:.3f}", "step": f"{step_s:g}"}
        answer = await self._ask("query_range", {"query": query, **times})
        return _read(answer, _tracks)

    async def _ask(self, endpoint: str, parameters: dict[str, str]) -> httpx.Response:
        url = f"{self._url}/{endpoint}"
        try:
            return await self._http.get(
                url,
                params={**parameters, "timeout": f"{self._timeout_s:g}s"},
                timeout=self._timeout_s,
                follow_redirects=False,
            )
        except httpx.TimeoutException as fault:
            raise PrometheusUnreachable(
                f"Prometheus gave no answer within {self._timeout_s:g} s"
            ) from fault
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise PrometheusUnreachable(
                f"Prometheus at {url} cannot be reached: {fault or type(fault).__name__}"
            ) from fault


def _read(
    answer: httpx.Response, result: Callable[[_Vector | _Matrix], list[Found]]
) -> list[Found]:
    try:
        decoded = _ANSWER.decode(answer.content)
        if decoded.status == "success" and decoded.data is not None:
            return result(decoded.data)
        reason = f"{decoded.errorType}: {decoded.error}"
    # ValueError: also a value that is not a number; RecursionError: too deep nesting
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        reason = f"the answer is not JSON of a vector or matrix ({fault})"
    raise SignalUnavailable(
        f"Prometheus answered {answer.status_code}, {reason[:_MOST_ERROR_CHARACTERS]}"
    )


def _samples(data: _Data) -> list[Sample]:
    if isinstance(data, _Matrix):
        raise ValueError("a matrix instead of a vector")
    return [
        Sample(series.metric, float(series.value[1]), series.value[0]) for series in data.result
    ]


def _tracks(data: _Data) -> list[Track]:
    if isinstance(data, _Vector):
        raise ValueError("a vector instead of a matrix")
    return [
        Track(series.metric, tuple((at_s, float(value)) for at_s, value in series.values))
        for series in data.result
    ]
