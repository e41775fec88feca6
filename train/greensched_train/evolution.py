"""Evolution strategies: the gradient of a smoothed objective, from runs of parameters around it.

    θ ← θ − α · Adam(mean over pairs of ε · (F(θ + σε) − F(θ − σε)) / 2σ)

Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning", 2017;
both sides of a pair run in the same worlds (common random numbers), and differences are divided by
their mean magnitude in each world, so that no world counts more than another.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_train.residual_nets import NetParameters
from greensched_train.training_config import Evolution

_FIRST_MOMENT, _SECOND_MOMENT, _LEAST = 0.9, 0.99, 1e-8  # Kingma and Ba, "Adam", ICLR 2015
_KEPT = 0.9  # of the running mean of the parameters, in each generation
_OWN_STREAM = 0x45  # tells the dice of a generation from those of other uses of the seed


class EvolutionState(NamedTuple):
    """All that a generation needs of those before it."""

    generation: int  # the number of those done
    parameters: NetParameters
    first: NetParameters  # moments of the gradient
    second: NetParameters
    mean: NetParameters  # running mean of the parameters: less noisy than the last ones


class TriedGeneration(NamedTuple):
    """The trials of a generation: parameters [2·pairs,P], and the seeds of their worlds."""

    noise: NetParameters  # [pairs,P]
    parameters: NetParameters  # [2·pairs,P] above the mean, then below it
    worlds: Sequence[int]


def first_state(parameters: NetParameters) -> EvolutionState:
    """Return the state before the first generation."""
    nothing = np.zeros_like(parameters)
    return EvolutionState(0, parameters, nothing, nothing.copy(), parameters.copy())


def generation_of(state: EvolutionState, method: Evolution, seed: int) -> TriedGeneration:
    """Return the next generation's trials; they depend on its number and the seed alone."""
    dice = np.random.default_rng([seed, _OWN_STREAM, state.generation])
    noise = dice.standard_normal((method.pairs, state.parameters.size))
    moved = method.deviation * noise
    worlds = dice.integers(0, 2**31, method.worlds).tolist()
    both = np.concatenate([state.parameters + moved, state.parameters - moved])
    return TriedGeneration(noise, both, worlds)


def next_state(
    state: EvolutionState, ran: TriedGeneration, objective: NetParameters, method: Evolution
) -> EvolutionState:
    """Return the state after a generation with these objectives, [2·pairs,worlds], to minimise."""
    pairs = ran.noise.shape[0]
    rise = objective[:pairs] - objective[pairs:]
    rise = rise / (np.abs(rise).mean(axis=0) + _LEAST)
    gradient = rise.mean(axis=1) @ ran.noise / pairs
    number = state.generation + 1
    first = _FIRST_MOMENT * state.first + (1.0 - _FIRST_MOMENT) * gradient
    second = _SECOND_MOMENT * state.second + (1.0 - _SECOND_MOMENT) * gradient**2
    step = first / (1.0 - _FIRST_MOMENT**number)
    step = step / (np.sqrt(second / (1.0 - _SECOND_MOMENT**number)) + _LEAST)
    parameters = state.parameters - method.learning_rate * step
    mean = _KEPT * state.mean + (1.0 - _KEPT) * parameters
    return EvolutionState(number, parameters, first, second, mean)
