"""Figures of how fast language models answer: shipped ones, or those of a file.

The shipped figures are from ML.ENERGY's leaderboard (ml-energy/leaderboard,
public/data/tasks/lm-arena-chat.json; Chung et al., "The ML.ENERGY Benchmark", arXiv 2505.06371,
2025): vLLM in BF16 with chats of the LM Arena on H100 SXM and B200, with as many requests at a time
as the batch allows. All have their batch full to within 1 %. Files of the leaderboard, or of the
same form, can be read.
"""

import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greensched_core.errors import BadInput
from greensched_simulator.formats.trace_rows import opened
from greensched_simulator.scenario.language_models import PARAMETERS

_FULL = 0.95  # mean share of the batch; below it, the last places were never measured
_GPUS = {"A100": "a100-sxm", "H100": "h100-sxm", "H200": "h200", "B200": "b200"}


class ServingProfile(NamedTuple):
    """The speed and power of a model on GPUs with a full batch."""

    generated_per_s: float  # tokens, all requests together
    gpu_watts: float  # mean of each GPU


Batches = Mapping[int, ServingProfile]  # by the requests at a time


class Figures(NamedTuple):
    """Measurements by model, GPU and number of GPUs; models in lower case."""

    source: str
    parameters: Mapping[str, float]  # active for a token
    measured: Mapping[tuple[str, str, int], Batches]


CITED = Figures(
    "ML.ENERGY's leaderboard (lm-arena-chat)",
    PARAMETERS,
    MappingProxyType({
        ("llama-3.1-8b", "h100-sxm", 1): {
            8: ServingProfile(1070, 486), 32: ServingProfile(3391, 560), 64: ServingProfile(5147,
                610),
            128: ServingProfile(7037, 669), 256: ServingProfile(9010, 691),
                512: ServingProfile(9806, 688),
        },
        ("llama-3.1-8b", "b200", 1): {
            8: ServingProfile(1637, 639), 32: ServingProfile(3810, 576), 64: ServingProfile(5589,
                617),
            128: ServingProfile(4570, 449), 256: ServingProfile(7664, 540),
                512: ServingProfile(9571, 577),
        },
        ("qwen3-14b", "h100-sxm", 1): {
            8: ServingProfile(627, 443), 32: ServingProfile(2023, 494), 64: ServingProfile(3140,
                525),
            128: ServingProfile(4474, 572), 256: ServingProfile(5760, 645),
        },
        ("qwen3-14b", "b200", 1): {
            8: ServingProfile(1087, 760), 32: ServingProfile(2866, 700), 64: ServingProfile(4176,
                697),
            128: ServingProfile(5787, 709), 256: ServingProfile(10_709, 955),
                512: ServingProfile(11_858, 913),
        },
        ("llama-3.1-70b", "h100-sxm", 4): {
            8: ServingProfile(470, 441), 32: ServingProfile(1487, 449), 64: ServingProfile(2511,
                500),
            128: ServingProfile(3876, 546), 256: ServingProfile(4915, 589),
                512: ServingProfile(5921, 623),
        },
        ("llama-3.1-70b", "b200", 2): {
            8: ServingProfile(476, 849), 32: ServingProfile(1590, 868), 64: ServingProfile(2598,
                905),
            128: ServingProfile(3978, 957), 256: ServingProfile(5372, 971),
                512: ServingProfile(7134, 966),
        },
    }),
)  # fmt: skip


class _Configuration(BaseModel):
    """The fields that are read of a configuration; others are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", protected_namespaces=())

    model_id: str
    gpu_model: str
    num_gpus: int = Field(ge=1)
    max_num_seqs: int = Field(ge=1)
    avg_batch_size: float = Field(gt=0)
    output_throughput_tokens_per_sec: float = Field(gt=0, allow_inf_nan=False)
    avg_power_watts: float = Field(gt=0, allow_inf_nan=False)  # of all GPUs
    activated_params_billions: float = Field(gt=0, allow_inf_nan=False)


class _Task(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    configurations: list[_Configuration] = Field(min_length=1)


def read_figures(path: Path) -> Figures:
    """Return the figures of a JSON file in the leaderboard's form; an unchanged file is read once.

    Configurations whose batch was not full, or on GPUs other than A100, H100, H200 and B200, are
    left out; of two alike the faster counts. Raises BadInput if the file has another form, or if
    nothing is left.
    """
    state = path.stat()
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed_ns: int, size: int) -> Figures:
    try:
        with opened(path) as file:
            task = _Task.model_validate(json.load(file))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as fault:
        raise BadInput(
            f"{path} is not a task of ML.ENERGY's leaderboard: {_fault_text(fault)}"
        ) from fault
    parameters: dict[str, float] = {}
    measured: dict[tuple[str, str, int], dict[int, ServingProfile]] = {}
    for each in task.configurations:
        gpu, batch = _GPUS.get(each.gpu_model), each.max_num_seqs
        if gpu is None or each.avg_batch_size < _FULL * batch:
            continue
        name = each.model_id.lower()
        parameters[name] = each.activated_params_billions * 1e9
        batches = measured.setdefault((name, gpu, each.num_gpus), {})
        found = ServingProfile(
            each.output_throughput_tokens_per_sec, each.avg_power_watts / each.num_gpus
        )
        batches[batch] = max(found, batches.get(batch, found))
    if not measured:
        raise BadInput(f"{path} has no full batch on {', '.join(_GPUS)}")
    ordered = {key: dict(sorted(batches.items())) for key, batches in measured.items()}
    return Figures(path.name, parameters, ordered)


def _fault_text(fault: Exception) -> str:
    if not isinstance(fault, ValidationError):
        return str(fault)
    first = fault.errors(include_url=False)[0]
    place = ".".join(str(at) for at in first["loc"])
    others = fault.error_count() - 1
    return f"{place}: {first['msg']}" + (f", and {others} more faults" if others else "")
