"""Language models in a scenario file: trainings, and the models of services."""

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
            f"{value!r} is not a known model{near(str(value), PARAMETERS)}: give its "
            f"number of parameters, such as 7e9, or one of {', '.join(PARAMETERS)}"
        )
    return PARAMETERS[value.lower()]


def _with_peak(gpu: str) -> str:
    if gpu not in PEAK_BF16_FLOP_PER_S:
        raise ValueError(
            f"no peak in BF16 is known for {gpu!r}; one is known for "
            f"{', '.join(PEAK_BF16_FLOP_PER_S)}"
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
    """Trainings of one language model, with runtimes from FLOPs; in addition to `load`."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$",
        description="First part of the jobs' names: lower-case letters, digits and -.",
    )
    jobs: int = Field(
        ge=1, le=1_000_000, description="Number of jobs that arrive within the scenario's length."
    )
    daily_swing: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="How much arrivals vary over a day: their rate peaks at 1 + this, times its "
        "mean.",
    )
    peak: Duration = Field(
        default=50_400.0,
        lt=86_400,
        description="Time of day with the most arrivals, counted from 0 h UTC.",
    )
    model: Parameters = Field(
        description="Number of parameters, such as 7e9, or a published model (docs/simulator.md)."
    )
    tokens: float = Field(
        gt=0, le=1e18, description="Median number of tokens that a training reads."
    )
    tokens_sigma: float = Field(
        default=0.0,
        ge=0,
        le=4,
        description="Standard deviation of the logarithm of that number; 0: all read the same.",
    )
    gpu: GpuWithPeak = Field(
        description="GPU for which the runtime is computed; some node must have it. On other "
        "nodes the node's speed scales it."
    )
    gpus: int = Field(default=1, ge=1, le=64, description="GPUs of each worker.")
    workers: int = Field(
        default=1,
        ge=1,
        le=10_000,
        description="Workers of a training, which run at the same time and share the work.",
    )
    mfu: float = Field(
        default=USUAL_MFU,
        gt=0,
        le=1,
        description="Share of the GPUs' peak in BF16 that is used (model FLOPs utilisation); "
        "Llama 3 reached 0.38 to 0.43 (Grattafiori et al., arXiv 2407.21783, 2024).",
    )
    gpu_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of a GPU's range of power that a training draws; default: as other "
        "jobs.",
    )
    cpu_cores: Cores = Field(description="CPU cores that each worker requests.")
    memory: Bytes = Field(description="Memory that each worker requests.")


class Length(ScenarioPart):
    """Number of tokens of generated requests."""

    mean: float = Field(gt=0, le=1e7, description="Mean number of tokens.")
    variation: float = Field(
        default=1.0,
        ge=0,
        le=10,
        description="Standard deviation divided by the mean; 1: exponential.",
    )


class Lengths(ScenarioPart):
    """Lengths of prompts and answers of a language model, drawn separately."""

    prompt: Length = Field(description="Tokens of the prompts.")
    generated: Length = Field(description="Tokens of the answers.")


class ServedModel(ScenarioPart):
    """A language model on GPUs with a measured speed, and its requests at a time."""

    name: str = Field(
        description="One of the measured models (docs/simulator.md), or a model_id of `figures`."
    )
    figures: InputFile | None = Field(
        default=None,
        description="Task of ML.ENERGY's leaderboard (JSON), or a file of that form; default: "
        "the shipped figures.",
    )
    gpu: GpuWithPeak = Field(
        description="GPU on which it was measured; every other GPU that a replica can get needs "
        "figures too."
    )
    gpus: int = Field(default=1, ge=1, le=64, description="GPUs of a replica.")
    batch: int = Field(
        ge=1, le=10_000, description="Requests that a replica works on at the same time."
    )
    mfu: float = Field(
        default=USUAL_MFU,
        gt=0,
        le=1,
        description="Share of the GPUs' peak in BF16 that is used while reading prompts: an "
        "assumption, not a measurement.",
    )
