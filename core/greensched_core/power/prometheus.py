"""Prometheus' HTTP API: one instant query, its samples, or the reason why not."""

from dataclasses import dataclass

import httpx
import msgspec

from greensched_core.errors import SignalUnavailable

_MOST_ERROR_CHARACTERS = 200


class PrometheusUnreachable(SignalUnavailable):
    """No answer at all: the next question would fare no better."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector."""

    labels: dict[str, str]
    value: float  # NaN and infinities as Prometheus writes them
    taken_at: float  # when the query was evaluated, seconds since the Unix epoch


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct, tag_field="resultType", tag="vector"):
    result: list[_Series]


class _Answer(msgspec.Struct):
    status: str
    data: _Vector | None = None
    errorType: str = ""
    error: str = ""


_ANSWER = msgspec.json.Decoder(_Answer)


class PrometheusApi:
    """Asks one Prometheus server; the caller opens and closes the HTTP client."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, *, timeout_s: float = 5.0) -> None:
        self._http = http
        self._url = f"{base_url.rstrip('/')}/api/v1/query"
        self._timeout_s = timeout_s

    async def instant(self, query: str) -> list[Sample]:
        """Return the samples of a PromQL query now; raise SignalUnavailable with the reason."""
        try:
            answer = await self._http.get(
                self._url,
                params={"query": query, "timeout": f"{self._timeout_s:g}s"},
                timeout=self._timeout_s,
                follow_redirects=False,
            )
        except httpx.TimeoutException as fault:
            raise PrometheusUnreachable(
                f"Prometheus gave no answer within {self._timeout_s:g} s"
            ) from fault
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise PrometheusUnreachable(
                f"Prometheus at {self._url} cannot be asked: {fault or type(fault).__name__}"
            ) from fault
        return _samples(answer)


def _samples(answer: httpx.Response) -> list[Sample]:
    try:
        decoded = _ANSWER.decode(answer.content)
        if decoded.status == "success" and decoded.data is not None:
            return [
                Sample(series.metric, float(series.value[1]), series.value[0])
                for series in decoded.data.result
            ]
        reason = f"{decoded.errorType}: {decoded.error}"
    # ValueError: also a value that is no number; RecursionError: nested beyond all reason
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        reason = f"not the JSON of a vector ({fault})"
    raise SignalUnavailable(
        f"Prometheus answered {answer.status_code}, {reason[:_MOST_ERROR_CHARACTERS]}"
    )
