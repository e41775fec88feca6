"""The observations, actions and infos of an agent, as Gymnasium defines them."""

from typing import Any

import numpy as np
from gymnasium import spaces

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_simulator.environments.episode_batch import EpisodeBatch
from greensched_simulator.environments.episode_parts import CANDIDATES, CAPPED, DOMAIN, HEAD, JOB
from greensched_simulator.environments.preparation import HEAD_NAMES, HeadName

AgentObservation = dict[
    str, Any
]  # candidates [N,F], context [15], mask [N]; in a vector with B in front

_MOST = float(np.finfo(np.float32).max)  # any finite number


def observation_space(candidates: int, features: int) -> spaces.Dict:
    """Return the space of an observation of at most `candidates` candidates."""
    return spaces.Dict(
        {
            "candidates": spaces.Box(-_MOST, _MOST, (candidates, features), np.float32),
            "context": spaces.Box(-_MOST, _MOST, (len(CONTEXT_FEATURES),), np.float32),
            "mask": spaces.MultiBinary(candidates),
        }
    )


def shape_of(batch: EpisodeBatch, head: HeadName) -> tuple[int, int]:
    """Return the most candidates that a batch shows for a head, and their number of features."""
    table = batch.tables[head]
    return table.shape[2], table.shape[1]


def observations_of(batch: EpisodeBatch, head: HeadName) -> AgentObservation:
    """Return the observations of a batch with one head, as views that each step overwrites."""
    return {
        "candidates": batch.tables[head].transpose((0, 2, 1)),
        "context": batch.context,
        "mask": batch.is_choice,
    }


def info_of(batch: EpisodeBatch, place: int) -> dict[str, Any]:
    """Return an episode's info: the subject of its decision, and its world."""
    asked = batch.asked[place]
    return {
        "job": int(asked[JOB]),  # -1 for decisions on a power cap, and if the episode is over
        "node": int(asked[CAPPED]),  # whose power cap is decided, else -1
        "domain": int(asked[DOMAIN]),  # of that node: 0 its CPUs, 1 its GPUs; else -1
        "head": (*HEAD_NAMES, "over")[asked[HEAD]],
        "candidates": int(asked[CANDIDATES]),
        "world": int(batch.world_of[place]),
    }
