"""Language models as services: how fast the places of a replica answer, by figures of its model.

How fast prompts are read is not measured, and is reckoned from FLOPs. All requests of a replica
share its GPUs, so that a place reads and answers at the batch's part of what these do.
"""

from collections.abc import Iterable
from typing import NamedTuple

from greensched_core.errors import BadInput
from greensched_core.quoting import near
from greensched_simulator.scenario.language import ServedModel
from greensched_simulator.scenario.language_models import read_per_s, useful_flop_per_s
from greensched_simulator.scenario.served_figures import (
    CITED,
    Figures,
    ServingProfile,
    read_figures,
)
from greensched_simulator.scenario.services import Service


class Rates(NamedTuple):
    """Tokens a second."""

    first_prompt_per_s: float  # until its answer begins, with the whole replica at work on it
    prompt_per_s: float  # that a place reads while all others are taken
    generated_per_s: float  # that a place answers by, likewise


def figures_of(served: ServedModel) -> Figures:
    """Return the figures that a model is looked up in; raise BadInput as `read_figures` does."""
    return CITED if served.figures is None else read_figures(served.figures)


def profile_of(served: ServedModel) -> ServingProfile:
    """Return what was measured; raise BadInput that lists what was where this was not."""
    name, figures = served.name.lower(), figures_of(served)
    found = figures.measured.get((name, served.gpu, served.gpus), {}).get(served.batch)
    if found is not None:
        return found
    models = sorted({model for model, _, _ in figures.measured})
    if name not in models:
        raise BadInput(
            f"{served.name!r} was not measured{near(served.name, models)}; there are figures for "
            f"{', '.join(models)}: use one of them, or give `tokens`"
        )
    told = "; ".join(
        f"{gpus} {gpu} with a batch of {', '.join(str(batch) for batch in batches)}"
        for (model, gpu, gpus), batches in figures.measured.items()
        if model == name
    )
    raise BadInput(
        f"{name} was not measured on {served.gpus} {served.gpu} with a batch of "
        f"{served.batch}; there are figures for {told}: use one of them, or give `tokens`"
    )


def rates_of(served: ServedModel) -> Rates:
    """Return the rates of a replica's places on the scenario's GPU."""
    flop_per_s = useful_flop_per_s(served.gpu, served.gpus, served.mfu)
    prompt_per_s = read_per_s(figures_of(served).parameters[served.name.lower()], flop_per_s)
    generated_per_s = profile_of(served).generated_per_s
    return Rates(prompt_per_s, prompt_per_s / served.batch, generated_per_s / served.batch)


def speed_on(served: ServedModel, gpu: str) -> float:
    """Return how fast as many other GPUs are, by generated tokens; raise BadInput as above."""
    other = profile_of(served.model_copy(update={"gpu": gpu}))
    return other.generated_per_s / profile_of(served).generated_per_s


def with_its_replica(service: Service) -> Service:
    """Return a service whose replica has the GPUs and places of its model, where it has one."""
    if service.model is None:
        return service
    told = {"gpus": service.model.gpus, "places": service.model.batch}
    return service.model_copy(update={"replica": service.replica.model_copy(update=told)})


def told_of(service: Service, gpu_ratio: float, gpus: Iterable[str]) -> list[str]:
    """Return what a service on such GPUs takes from here, each a sentence; none if no model."""
    served = service.model
    if served is None:
        return []
    profile, rates = profile_of(served), rates_of(served)
    others = sorted(set(gpus) - {served.gpu})
    return [
        *(
            f"{service.name}: on {gpu} it is {speed_on(served, gpu):.3g} times as fast as on "
            f"{served.gpu}, by the tokens/s measured there; the same is assumed for prompts"
            for gpu in others
            if served.batch
            in figures_of(served).measured.get((served.name.lower(), gpu, served.gpus), ())
        ),
        f"{service.name}: {served.name} on {served.gpus} {served.gpu} generates "
        f"{profile.generated_per_s:,.0f} tokens/s for {served.batch} requests at a time and drew "
        f"{profile.gpu_watts:.0f} W a GPU, by {figures_of(served).source}; the bill's watts "
        f"are those of gpu_ratio {gpu_ratio:g}",
        f"{service.name}: prompts at {rates.first_prompt_per_s:,.0f} tokens/s are computed, not "
        f"measured: 2 FLOPs a parameter and token at {100 * served.mfu:g} % of the peak",
    ]
