"""Checks across the parts of a service, and of the log of requests that it names."""

from collections.abc import Sequence

from greensched_core.errors import BadInput
from greensched_simulator.scenario.file import FaultsByPlace
from greensched_simulator.scenario.language import ServedModel
from greensched_simulator.scenario.services import Replica, RequestTrace, Service
from greensched_simulator.world.request_curve import log_of, too_short
from greensched_simulator.world.served_models import profile_of

_BY_TOKENS = ("tokens", "model")  # fields that turn a request's tokens into times


def service_faults(services: Sequence[Service | None], length_s: float | None) -> FaultsByPlace:
    """Yield place (below `services`) and reason of each fault; None is an unreadable service."""
    names: set[str] = set()
    for number, service in enumerate(services):
        if service is None:
            continue
        if service.name in names:
            yield (number, "name"), f"{service.name!r} names another service already"
        names.add(service.name)
        for place, reason in _faults(service, length_s):
            yield (number, *place), reason


def _faults(service: Service, length_s: float | None) -> FaultsByPlace:
    requests, rule = service.requests, service.autoscaler
    if (requests.trace is None) == (requests.generator is None):
        yield ("requests",), "give either trace or generator"
    if sum(way is not None for way in (service.service_time, service.tokens, service.model)) != 1:
        yield (), "give either service_time, tokens or model"
    if rule.least > rule.most:
        yield ("autoscaler", "least"), f"is greater than `most`, {rule.most}"
    by_tokens = next((name for name in _BY_TOKENS if getattr(service, name) is not None), "")
    if service.objective.of == "first-token" and not by_tokens:
        yield ("objective", "of"), "the first token's time needs `tokens` or `model`: give one"
    lengths = requests.generator and requests.generator.lengths
    if lengths and not by_tokens:
        reason = "have no effect without `tokens` or `model`: give one of these, or remove them"
        yield ("requests", "generator", "lengths"), reason
    if by_tokens and requests.trace is None and lengths is None:
        reason = "needs requests' tokens: give requests.trace or requests.generator.lengths"
        yield (by_tokens,), reason
    if requests.trace is not None:
        yield from _log(requests.trace, by_tokens, length_s)
    if service.model is not None:
        yield from _model(service.model, service.replica)
    elif service.replica.gpu_ratio is not None and not service.replica.gpus:
        yield (
            ("replica", "gpu_ratio"),
            "a replica requests no GPU: give gpus, too, or remove it",
        )


def _model(model: ServedModel, replica: Replica) -> FaultsByPlace:
    try:
        profile_of(model)
    except BadInput as fault:
        yield ("model",), str(fault)
    for field, given, by_model in (
        ("gpus", replica.gpus, model.gpus),
        ("places", replica.places, model.batch),
    ):
        if field in replica.model_fields_set and given != by_model:
            yield ("replica", field), f"the model sets {by_model}: remove it"


def _log(trace: RequestTrace, by_tokens: str, length_s: float | None) -> FaultsByPlace:
    place = ("requests", "trace", "file")
    try:
        log = log_of(trace)
    except BadInput as fault:
        yield place, str(fault)
        return
    if by_tokens and not log.has_tokens:
        yield place, f"has no tokens, which `{by_tokens}` needs: give service_time instead"
    short = "" if length_s is None else too_short(log, trace, length_s)
    if short:
        yield place, short
