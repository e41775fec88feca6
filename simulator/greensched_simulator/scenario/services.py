"""The interactive services of a scenario file: requests, how long they take, and replicas."""

from typing import Annotated, Literal

from pydantic import Field

from greensched_simulator.scenario.fields import Bytes, Cores, Duration, InputFile, ScenarioPart
from greensched_simulator.scenario.language import Lengths, ServedModel


class RequestTrace(ScenarioPart):
    """Requests from a log."""

    file: InputFile = Field(description="In one of the formats of docs/traces.md#requests.")
    skip_faulty: bool = Field(
        default=False, description="Leave out rows at fault, and tell of them, instead of refusing."
    )
    rate_factor: float = Field(
        default=1.0, gt=0, le=1e6, description="So many times as many requests at any time."
    )
    stretch: float = Field(
        default=1.0, gt=0, le=1e4, description="The log lasts so many times as long, at its rates."
    )
    repeat: int = Field(
        default=1, ge=1, le=10_000, description="Play the log so often, one after the other."
    )


class RequestGenerator(ScenarioPart):
    """Requests made up by the seed: a Poisson process with a daily wave."""

    rate_per_s: float = Field(gt=0, le=1e6, description="Mean requests a second.")
    daily_swing: float = Field(
        default=0.5, ge=0, le=1, description="Requests peak at 1 + this of their mean."
    )
    peak: Duration = Field(
        default=50_400.0, lt=86_400, description="Time of the most requests after 0 h UTC."
    )
    lengths: Lengths | None = Field(
        default=None, description="Tokens of each request; `tokens` and `model` need them."
    )


class Requests(ScenarioPart):
    """When requests come."""

    trace: RequestTrace | None = Field(default=None, description="Either this or `generator`.")
    generator: RequestGenerator | None = Field(default=None, description="Either this or `trace`.")


class ServiceTime(ScenarioPart):
    """What a request takes, its wait apart, on the reference core or on GPUs; a gamma."""

    mean: Duration = Field(gt=0, description="Mean, such as 80ms.")
    variation: float = Field(
        default=1.0,
        ge=0.05,
        le=10,
        description="Standard deviation over mean; 1: exponential.",
    )


class TokenRates(ScenarioPart):
    """What a request of a language model takes, by its tokens, which trace or lengths tell."""

    prompt_per_s: float = Field(
        gt=0, le=1e7, description="Tokens a second that one request's prompt is read at."
    )
    generated_per_s: float = Field(
        gt=0,
        le=1e6,
        description="Tokens a second that one request's answer grows by, with the replica's other "
        "places taken.",
    )


class Objective(ScenarioPart):
    """The latency objective."""

    share: float = Field(
        default=0.99, gt=0, lt=1, description="Of the requests, to be answered in time."
    )
    within: Duration = Field(gt=0, description="Time that is, waiting included.")
    of: Literal["answer", "first-token"] = Field(
        default="answer", description="The whole answer, or the first token of it."
    )


class Replica(ScenarioPart):
    """What one replica asks for, and how much it does at once."""

    cpu_cores: Cores = Field(description="Requested.")
    memory: Bytes = Field(description="Requested.")
    gpus: int = Field(default=0, ge=0, le=64, description="Whole GPUs.")
    places: int = Field(
        default=1, ge=1, le=10_000, description="Requests that it works on at the same time."
    )
    startup: Duration = Field(
        default=0.0, description="From its start until it answers; those of the begin are ready."
    )


class Autoscaler(ScenarioPart):
    """How many replicas there are."""

    every: Duration = Field(default=300.0, ge=1, description="Between two decisions.")
    least: int = Field(default=1, ge=0, le=10_000, description="Replicas, whatever comes.")
    most: int = Field(default=100, ge=1, le=10_000, description="Replicas, whatever comes.")
    head_room: float = Field(
        default=0.2, ge=0, le=10, description="Reckon with so much more than came last."
    )
    scale_down_after: Duration = Field(
        default=300.0,
        description="Keep the most replicas that were wanted within this time (Kubernetes' "
        "stabilizationWindowSeconds).",
    )


class Service(ScenarioPart):
    """An interactive service, whose replicas share the cluster with the jobs."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$",
            description="Beginning of the replicas' names: lower case, digits and -.",
        ),
    ]
    requests: Requests = Field(description="When they come.")
    service_time: ServiceTime | None = Field(
        default=None, description="One of this, `tokens` and `model`."
    )
    tokens: TokenRates | None = Field(
        default=None,
        description="One of this, `service_time` and `model`; needs a trace with tokens, or "
        "lengths.",
    )
    model: ServedModel | None = Field(
        default=None,
        description="One of this, `service_time` and `tokens`, likewise; tells the replica's "
        "GPUs and places, too.",
    )
    objective: Objective = Field(description="Which latency is promised.")
    replica: Replica = Field(description="One replica.")
    autoscaler: Autoscaler = Field(
        default=Autoscaler(), description="Decides how many replicas there are."
    )
