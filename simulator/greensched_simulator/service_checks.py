"""What must hold between the parts of a service, and of the log of requests that it names."""

from collections.abc import Iterator, Sequence

from greensched_core.errors import BadInput
from greensched_simulator.request_curve import log_of, too_short
from greensched_simulator.scenario_file import Place
from greensched_simulator.scenario_services import RequestTrace, Service

Found = Iterator[tuple[Place, str]]


def service_faults(services: Sequence[Service | None], length_s: float | None) -> Found:
    """Yield place, from the services on, and reason of each fault; None could not be read."""
    names: set[str] = set()
    for number, service in enumerate(services):
        if service is None:
            continue
        if service.name in names:
            yield (number, "name"), f"{service.name!r} names another service already"
        names.add(service.name)
        for place, reason in _faults(service, length_s):
            yield (number, *place), reason


def _faults(service: Service, length_s: float | None) -> Found:
    requests, rule = service.requests, service.autoscaler
    if (requests.trace is None) == (requests.generator is None):
        yield ("requests",), "give either trace or generator"
    if (service.service_time is None) == (service.tokens is None):
        yield (), "give either service_time or tokens"
    if rule.least > rule.most:
        yield ("autoscaler", "least"), f"is more than most, {rule.most}"
    if service.objective.of == "first-token" and service.tokens is None:
        yield ("objective", "of"), "the first token is known by `tokens` only: give them"
    if requests.trace is None and service.tokens is not None:
        yield ("tokens",), "needs requests.trace, which tells each request's tokens"
    if requests.trace is not None:
        yield from _log(requests.trace, service, length_s)


def _log(trace: RequestTrace, service: Service, length_s: float | None) -> Found:
    place = ("requests", "trace", "file")
    try:
        log = log_of(trace)
    except BadInput as fault:
        yield place, str(fault)
        return
    if service.tokens is not None and not log.has_tokens:
        yield place, "tells no tokens, which `tokens` needs: give service_time instead"
    short = "" if length_s is None else too_short(log, trace, length_s)
    if short:
        yield place, short
