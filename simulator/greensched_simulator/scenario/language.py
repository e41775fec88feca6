"""Language models in a scenario file: trainings, and the model that a service answers with."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from greensched_core.quoting import near
from greensched_simulator.scenario.fields import (
    Bytes,
    Cores,
    Duration,
    GpuModel,
    InputFile,
    ScenarioPart,
)
from greensched_simulator.scenario.language_models import (
    PARAMETERS,
    PEAK_BF16_FLOP_PER_S,
    USUAL_MFU,
)


def _parameters(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str) or value.lower() not in PARAMETERS:
        raise ValueError(
            f"{value!r} is no model that is known here{near(str(value), PARAMETERS)}: give its "
            f"number of parameters, such as 7e9, or one of {', '.join(PARAMETERS)}"
        )
    return PARAMETERS[value.lower()]


def _with_peak(gpu: str) -> str:
    if gpu not in PEAK_BF16_FLOP_PER_S:
        raise ValueError(
            f"no peak in BF16 is known of {gpu!r}; it is of {', '.join(PEAK_BF16_FLOP_PER_S)}"
        )
    return gpu


Parameters = Annotated[
    float, BeforeValidator(_parameters), Field(gt=0, le=1e15),
    WithJsonSchema({
        "anyOf": [{"type": "number"}, {"type": "string"}], "examples": [7e9, "llama-3.1-8b"],
    }),
]  # fmt: skip
GpuWithPeak = Annotated[GpuModel, AfterValidator(_with_peak)]


class Training(ScenarioPart):
    """Trainings of one language model, whose runtimes follow from FLOPs; on top of `load`."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$",
        description="Beginning of the jobs' names: lower case, digits and -.",
    )
    jobs: int = Field(ge=1, le=1_000_000, description="How many arrive within the length.")
    daily_swing: float = Field(
        default=0.5, ge=0, le=1, description="Arrivals peak at 1 + this of their mean."
    )
    peak: Duration = Field(
        default=50_400.0, lt=86_400, description="Time of the most arrivals after 0 h UTC."
    )
    model: Parameters = Field(
        description="Number of parameters, such as 7e9, or a published model (docs/simulator.md)."
    )
    tokens: float = Field(gt=0, le=1e18, description="That a training reads: the median.")
    tokens_sigma: float = Field(
        default=0.0,
        ge=0,
        le=4,
        description="Standard deviation of their number's logarithm; 0: all read as many.",
    )
    gpu: GpuWithPeak = Field(
        description="That the runtime holds on, and some node has; elsewhere a node's speed tells."
    )
    gpus: int = Field(default=1, ge=1, le=64, description="Of each worker.")
    workers: int = Field(
        default=1, ge=1, le=10_000, description="That all run at the same time and share the work."
    )
    mfu: float = Field(
        default=USUAL_MFU,
        gt=0,
        le=1,
        description="Share of the GPUs' peak in BF16 that is put to use (model FLOPs "
        "utilisation); Llama 3 reached 0.38 to 0.43 (Grattafiori et al., arXiv 2407.21783, 2024).",
    )
    cpu_cores: Cores = Field(description="Requested by each worker.")
    memory: Bytes = Field(description="Requested by each worker.")


class Length(ScenarioPart):
    """How many tokens, of requests that are made up."""

    mean: float = Field(gt=0, le=1e7, description="Tokens.")
    variation: float = Field(
        default=1.0, ge=0, le=10, description="Standard deviation over mean; 1: exponential."
    )


class Lengths(ScenarioPart):
    """How long the requests to a language model and its answers are, drawn apart."""

    prompt: Length = Field(description="Of the prompts.")
    generated: Length = Field(description="Of the answers.")


class ServedModel(ScenarioPart):
    """A language model on some GPUs as it was measured: how fast, and how many at a time."""

    name: str = Field(
        description="One of the measured models (docs/simulator.md), or a model_id of `figures`."
    )
    figures: InputFile | None = Field(
        default=None,
        description="A task of ML.ENERGY's leaderboard (JSON), or a file of that form; without it "
        "the few that come along.",
    )
    gpu: GpuWithPeak = Field(
        description="It was measured on; other GPUs that a replica can get need figures, too."
    )
    gpus: int = Field(default=1, ge=1, le=64, description="Of a replica.")
    batch: int = Field(
        ge=1, le=10_000, description="Requests that a replica works on at the same time."
    )
    mfu: float = Field(
        default=USUAL_MFU,
        gt=0,
        le=1,
        description="Share of the GPUs' peak in BF16 that reading prompts puts to use: not "
        "measured, an assumption.",
    )
