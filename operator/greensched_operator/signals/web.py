"""Requests to providers: one GET at a time, with limits on time, size, rate and attempts.

Keys appear only in requests: no message, log line or metric shows an address with its parameters.
"""

import asyncio
import email.utils
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
import tenacity
from aiolimiter import AsyncLimiter

from greensched_core.clock import Clock
from greensched_core.handshakes import close_cancelled
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    ProviderFault,
    Reply,
    Request,
)

_TRANSIENT = {FaultReason.UNREACHABLE, FaultReason.SERVER_ERROR}
LONGEST_RETRY_AFTER_S = 6 * 3_600.0


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `requests` within `seconds`."""

    requests: float
    seconds: float


_ANY_RATE = Rate(5, 1)
RATES: Mapping[str, Rate] = {
    "caisoOasis": Rate(1, 5),  # acceptable use policy of CAISO
    "entsoe": Rate(100, 60),  # 400 a minute per token, then a ban of ten minutes
    "wattTime": Rate(150, 300),  # 100 logins in five minutes, and each poll logs in
}


@dataclass(frozen=True)
class WebLimits:
    """Limits of requests; the defaults suit every known provider."""

    timeout_s: float = 20.0  # of a whole attempt, including the body
    body_bytes: int = 8 * 2**20  # 72 h of five-minute slots are 80 kB
    attempts: int = 3  # if the server is unreachable or fails
    longest_pause_s: float = 10.0  # between attempts
    rates: Mapping[str, Rate] = field(default_factory=lambda: RATES)


def make_http() -> httpx.AsyncClient:
    """Return a client that follows no redirects; the caller closes it."""
    return httpx.AsyncClient(
        follow_redirects=False,
        timeout=httpx.Timeout(10.0),
        headers={"User-Agent": "greensched", "Accept": "*/*"},
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=8),
        event_hooks={"request": [close_cancelled]},
    )


class Web:
    """Runs the conversations with providers within one event loop."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        clock: Clock,
        limits: WebLimits | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`sleep` is called between attempts."""
        self._http = http
        self._clock = clock
        self._limits = limits or WebLimits()
        self._sleep = sleep
        self._limiters: dict[str, AsyncLimiter] = {}

    async def converse(self, provider: str, conversation: Conversation) -> Answer:
        """Send a conversation's requests until it returns its answer. Raises ProviderFault."""
        try:
            request = next(conversation)
            while True:
                try:
                    reply = await self._send(provider, request)
                except ProviderFault as fault:
                    request = conversation.throw(fault)
                else:
                    request = conversation.send(reply)
        except StopIteration as returned:
            answer: Answer = returned.value
            return answer

    async def _send(self, provider: str, request: Request) -> Reply:
        limiter = self._limiter(provider)
        attempts = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self._limits.attempts),
            wait=tenacity.wait_random_exponential(1.0, self._limits.longest_pause_s),
            retry=tenacity.retry_if_exception(_is_transient),
            sleep=self._sleep,
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                async with limiter:
                    return await self._once(request)
        raise AssertionError("tenacity raises or returns")

    def _limiter(self, provider: str) -> AsyncLimiter:
        limiter = self._limiters.get(provider)
        if limiter is None:
            rate = self._limits.rates.get(provider, _ANY_RATE)
            limiter = AsyncLimiter(rate.requests, rate.seconds)
            self._limiters[provider] = limiter
        return limiter

    async def _once(self, request: Request) -> Reply:
        host = urlsplit(request.url).hostname or "?"
        try:
            async with (
                asyncio.timeout(self._limits.timeout_s),
                self._http.stream(
                    "GET",
                    _address(request),
                    headers=list(request.headers),
                    follow_redirects=False,
                ) as response,
            ):
                self._refuse(response, host)
                return Reply(response.status_code, await self._body(response, host))
        except TimeoutError as fault:
            late = f"{host}: no complete answer within {self._limits.timeout_s:g} s"
            raise ProviderFault(FaultReason.UNREACHABLE, late) from fault
        except httpx.DecodingError as fault:
            raise ProviderFault(
                FaultReason.GARBAGE, f"{host}: the body cannot be unpacked"
            ) from fault
        # Only the exception's type is shown: httpx's messages may contain the address.
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError) as fault:
            raise ProviderFault(
                FaultReason.UNREACHABLE, f"{host}: {type(fault).__name__}"
            ) from fault

    def _refuse(self, response: httpx.Response, host: str) -> None:
        status = response.status_code
        if status == 429:
            raise ProviderFault(
                FaultReason.RATE_LIMITED,
                f"{host}: HTTP 429",
                retry_after_s=_retry_after_s(response, self._clock.now()),
            )
        if status >= 500:
            raise ProviderFault(FaultReason.SERVER_ERROR, f"{host}: HTTP {status}")
        if 300 <= status < 400:
            raise ProviderFault(
                FaultReason.GARBAGE, f"{host}: HTTP {status}: redirects are not followed"
            )

    async def _body(self, response: httpx.Response, host: str) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > self._limits.body_bytes:
                most = f"{host}: the answer has more than {self._limits.body_bytes} bytes"
                raise ProviderFault(FaultReason.GARBAGE, most)
        return bytes(body)


def _address(request: Request) -> httpx.URL:
    url = httpx.URL(request.url)
    return url.copy_merge_params(list(request.parameters)) if request.parameters else url


def _is_transient(fault: BaseException) -> bool:
    return isinstance(fault, ProviderFault) and fault.reason in _TRANSIENT


def _retry_after_s(response: httpx.Response, now: float) -> float | None:
    """Return the seconds of Retry-After, which is a number or a date; None if absent."""
    written = response.headers.get("Retry-After", "").strip()
    seconds = None
    if written.isascii() and written.isdigit() and len(written) < 10:
        seconds = float(written)
    else:
        with suppress(ValueError, TypeError, OverflowError):
            seconds = email.utils.parsedate_to_datetime(written).timestamp() - now
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
