"""How fast language models answer on boards, as it was measured.

Figures of ML.ENERGY's leaderboard (ml-energy/leaderboard, public/data/tasks/lm-arena-chat.json;
Chung et al., "The ML.ENERGY Benchmark", arXiv 2505.06371, 2025): vLLM in BF16 with chats of the LM
Arena, with as many requests at a time as the batch allows, on H100 SXM and B200. A few of its
configurations are cited, all with their batch full to within 1 %.

How fast prompts are read is not measured there, and is reckoned from FLOPs. All requests of a
replica share its boards, so that a place reads and answers at the batch's part of what these do.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from greensched_core.errors import BadInput
from greensched_simulator.language_models import PARAMETERS, read_per_s, useful_flop_per_s
from greensched_simulator.scenario_fields import near
from greensched_simulator.scenario_language import ServedModel
from greensched_simulator.scenario_services import Service


class Profile(NamedTuple):
    """A model on some boards with a full batch."""

    generated_per_s: float  # tokens of all requests together
    board_watts: float  # mean of each


class Rates(NamedTuple):
    """Tokens a second."""

    first_prompt_per_s: float  # until its answer begins, with the whole replica at work on it
    prompt_per_s: float  # that a place reads while all others are taken
    generated_per_s: float  # that a place answers by, likewise


_Configuration = tuple[str, str, int]  # model, board, boards

MEASURED: Mapping[_Configuration, Mapping[int, Profile]] = MappingProxyType({
    ("llama-3.1-8b", "h100-sxm", 1): {
        8: Profile(1070, 486), 32: Profile(3391, 560), 64: Profile(5147, 610),
        128: Profile(7037, 669), 256: Profile(9010, 691), 512: Profile(9806, 688),
    },
    ("llama-3.1-8b", "b200", 1): {
        8: Profile(1637, 639), 32: Profile(3810, 576), 64: Profile(5589, 617),
        128: Profile(4570, 449), 256: Profile(7664, 540), 512: Profile(9571, 577),
    },
    ("qwen3-14b", "h100-sxm", 1): {
        8: Profile(627, 443), 32: Profile(2023, 494), 64: Profile(3140, 525),
        128: Profile(4474, 572), 256: Profile(5760, 645),
    },
    ("qwen3-14b", "b200", 1): {
        8: Profile(1087, 760), 32: Profile(2866, 700), 64: Profile(4176, 697),
        128: Profile(5787, 709), 256: Profile(10_709, 955), 512: Profile(11_858, 913),
    },
    ("llama-3.1-70b", "h100-sxm", 4): {
        8: Profile(470, 441), 32: Profile(1487, 449), 64: Profile(2511, 500),
        128: Profile(3876, 546), 256: Profile(4915, 589), 512: Profile(5921, 623),
    },
    ("llama-3.1-70b", "b200", 2): {
        8: Profile(476, 849), 32: Profile(1590, 868), 64: Profile(2598, 905),
        128: Profile(3978, 957), 256: Profile(5372, 971), 512: Profile(7134, 966),
    },
})  # fmt: skip


def profile_of(served: ServedModel) -> Profile:
    """Return what was measured; raise BadInput that lists what was where this was not."""
    name = served.name.lower()
    found = MEASURED.get((name, served.board, served.boards), {}).get(served.batch)
    if found is not None:
        return found
    models = sorted({model for model, _, _ in MEASURED})
    if name not in models:
        raise BadInput(
            f"{served.name!r} was not measured{near(served.name, models)}; there are figures of "
            f"{', '.join(models)}: take one of them, or give `tokens`"
        )
    told = "; ".join(
        f"{boards} {board} with a batch of {', '.join(str(batch) for batch in batches)}"
        for (model, board, boards), batches in MEASURED.items()
        if model == name
    )
    raise BadInput(
        f"{name} was not measured on {served.boards} {served.board} with a batch of "
        f"{served.batch}; there are figures for {told}: take one of them, or give `tokens`"
    )


def rates_of(served: ServedModel) -> Rates:
    """Return the rates of a replica's places on the board that is told."""
    flop_per_s = useful_flop_per_s(served.board, served.boards, served.mfu)
    prompt_per_s = read_per_s(PARAMETERS[served.name.lower()], flop_per_s)
    generated_per_s = profile_of(served).generated_per_s
    return Rates(prompt_per_s, prompt_per_s / served.batch, generated_per_s / served.batch)


def speed_on(served: ServedModel, board: str) -> float:
    """Return how fast as many other boards are, by generated tokens; raise BadInput as above."""
    other = profile_of(served.model_copy(update={"board": board}))
    return other.generated_per_s / profile_of(served).generated_per_s


def with_its_replica(service: Service) -> Service:
    """Return a service whose replica has the boards and places of its model, where it has one."""
    if service.model is None:
        return service
    told = {"gpus": service.model.boards, "places": service.model.batch}
    return service.model_copy(update={"replica": service.replica.model_copy(update=told)})


def told_of(service: Service, gpu_ratio: float, boards: Iterable[str]) -> list[str]:
    """Return what a service on such boards takes from here, each a sentence; none if no model."""
    served = service.model
    if served is None:
        return []
    profile, rates = profile_of(served), rates_of(served)
    others = sorted(set(boards) - {served.board})
    return [
        *(
            f"{service.name}: on {board} it is {speed_on(served, board):.3g} times as fast as on "
            f"{served.board}, by the tokens/s measured there; so are prompts taken to be"
            for board in others
            if served.batch in MEASURED.get((served.name.lower(), board, served.boards), ())
        ),
        f"{service.name}: {served.name} on {served.boards} {served.board} generates "
        f"{profile.generated_per_s:,.0f} tokens/s for {served.batch} requests at a time and drew "
        f"{profile.board_watts:.0f} W a board, as ML.ENERGY's leaderboard measured it "
        f"(lm-arena-chat); the bill's watts are those of gpu_ratio {gpu_ratio:g}",
        f"{service.name}: prompts at {rates.first_prompt_per_s:,.0f} tokens/s are reckoned, not "
        f"measured: 2 FLOPs a parameter and token at {100 * served.mfu:g} % of the peak",
    ]
