"""The interactive services of a scenario file: requests, their times, and replicas."""

from typing import Annotated, Literal

from pydantic import Field

from greensched_simulator.scenario.fields import Bytes, Cores, Duration, InputFile, ScenarioPart
from greensched_simulator.scenario.language import Lengths, ServedModel


class RequestTrace(ScenarioPart):
    """Requests from a log."""

    file: InputFile = Field(description="Log in one of the formats of docs/traces.md#requests.")
    skip_faulty: bool = Field(
        default=False, description="Leave out and report faulty rows instead of refusing the log."
    )
    rate_factor: float = Field(
        default=1.0, gt=0, le=1e6, description="Multiplies the rate of requests."
    )
    stretch: float = Field(
        default=1.0, gt=0, le=1e4, description="Multiplies the length of the log; rates stay."
    )
    repeat: int = Field(
        default=1, ge=1, le=10_000, description="Play the log this many times in a row."
    )


class RequestGenerator(ScenarioPart):
    """Requests drawn by the seed: a Poisson process with a daily wave."""

    rate_per_s: float = Field(gt=0, le=1e6, description="Mean requests per second.")
    daily_swing: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Requests peak at 1 + this times their mean.",
    )
    peak: Duration = Field(
        default=50_400.0,
        lt=86_400,
        description="Time of day with the most requests, counted from 0 h UTC.",
    )
    lengths: Lengths | None = Field(
        default=None, description="Tokens of each request; required by `tokens` and `model`."
    )


class Requests(ScenarioPart):
    """Requests over time, from a log or a generator."""

    trace: RequestTrace | None = Field(
        default=None, description="Log of requests; excludes `generator`."
    )
    generator: RequestGenerator | None = Field(
        default=None, description="Generated requests; excludes `trace`."
    )


class ServiceTime(ScenarioPart):
    """Time of a request without its wait, on the reference core or on GPUs; gamma distributed."""

    mean: Duration = Field(gt=0, description="Mean time of a request, such as 80ms.")
    variation: float = Field(
        default=1.0,
        ge=0.05,
        le=10,
        description="Standard deviation divided by the mean; 1: exponential.",
    )


class TokenRates(ScenarioPart):
    """Time of a language model's request by its tokens, which a trace or `lengths` gives."""

    prompt_per_s: float = Field(
        gt=0, le=1e7, description="Tokens per second at which one request's prompt is read."
    )
    generated_per_s: float = Field(
        gt=0,
        le=1e6,
        description="Tokens per second of one request's answer while the replica's other places "
        "are taken.",
    )


class Objective(ScenarioPart):
    """The latency objective."""

    share: float = Field(
        default=0.99, gt=0, lt=1, description="Share of the requests that must be answered in time."
    )
    within: Duration = Field(gt=0, description="Time limit, waiting included.")
    of: Literal["answer", "first-token"] = Field(
        default="answer",
        description="What must arrive in time: the whole answer, or its first token.",
    )


class Replica(ScenarioPart):
    """The resources of one replica, and the requests that it serves at a time."""

    cpu_cores: Cores = Field(description="CPU cores that a replica requests.")
    memory: Bytes = Field(description="Memory that a replica requests.")
    gpus: int = Field(
        default=0, ge=0, le=64, description="GPUs that a replica requests, whole ones only."
    )
    gpu_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of a GPU's range of power that a replica draws; default: what was "
        "measured for its `model`, else `assumptions.gpu_ratio`.",
    )
    places: int = Field(
        default=1, ge=1, le=10_000, description="Requests that a replica works on at the same time."
    )
    startup: Duration = Field(
        default=0.0,
        description="Time from a replica's start until it answers; replicas at the "
        "scenario's start answer at once.",
    )


class Autoscaler(ScenarioPart):
    """The number of replicas over time."""

    every: Duration = Field(default=300.0, ge=1, description="Time between two decisions.")
    least: int = Field(default=1, ge=0, le=10_000, description="Least number of replicas.")
    most: int = Field(default=100, ge=1, le=10_000, description="Largest number of replicas.")
    head_room: float = Field(
        default=0.2,
        ge=0,
        le=10,
        description="Expect this share more requests than in the last interval.",
    )
    scale_down_after: Duration = Field(
        default=300.0,
        description="Keep the highest number of replicas wanted within this time "
        "(Kubernetes' stabilizationWindowSeconds).",
    )


class Service(ScenarioPart):
    """An interactive service, whose replicas share the cluster with the jobs."""

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$",
            description="First part of the replicas' names: lower-case letters, digits and -.",
        ),
    ]
    requests: Requests = Field(description="Requests over time.")
    service_time: ServiceTime | None = Field(
        default=None, description="Time of a request; excludes `tokens` and `model`."
    )
    tokens: TokenRates | None = Field(
        default=None,
        description="Rates by tokens; excludes `service_time` and `model`. Needs a trace with "
        "tokens, or `lengths`.",
    )
    model: ServedModel | None = Field(
        default=None,
        description="Served language model; excludes `service_time` and `tokens`. Needs a trace "
        "with tokens, or `lengths`, and sets the replica's GPUs and places.",
    )
    objective: Objective = Field(description="Latency objective.")
    replica: Replica = Field(description="Resources and capacity of one replica.")
    frequency_sensitivity: float = Field(
        default=0.43,
        ge=0,
        le=1,
        description="Share of a request's time that scales with CPU frequency. The default is the "
        "mean of what was measured for jobs. Matters only under power caps.",
    )
    autoscaler: Autoscaler = Field(
        default=Autoscaler(), description="Chooses the number of replicas."
    )
