"""What an agent sees and may answer, in Gymnasium's words."""

from typing import Any

import numpy as np
from gymnasium import spaces

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_simulator.environments.episode_batch import EpisodeBatch
from greensched_simulator.environments.episode_parts import CANDIDATES, CAPPED, HEAD, JOB
from greensched_simulator.environments.preparation import HEADS, Head

Seen = dict[str, Any]  # candidates [N,F], context [8], mask [N]; of a vector with B in front

_MOST = float(np.finfo(np.float32).max)  # any finite number


def observation_space(candidates: int, features: int) -> spaces.Dict:
    """Return the space of one observation of so many candidates at most."""
    return spaces.Dict(
        {
            "candidates": spaces.Box(-_MOST, _MOST, (candidates, features), np.float32),
            "context": spaces.Box(-_MOST, _MOST, (len(CONTEXT_FEATURES),), np.float32),
            "mask": spaces.MultiBinary(candidates),
        }
    )


def shape_of(batch: EpisodeBatch, head: Head) -> tuple[int, int]:
    """Return how many candidates a batch shows of a head, and with how many features."""
    table = batch.tables[head]
    return table.shape[2], table.shape[1]


def seen_on(batch: EpisodeBatch, head: Head) -> Seen:
    """Return what the episodes of a batch with one head show: views, which each step writes
    anew.
    """
    return {
        "candidates": batch.tables[head].transpose((0, 2, 1)),
        "context": batch.context,
        "mask": batch.is_choice,
    }


def told_of(batch: EpisodeBatch, place: int) -> dict[str, Any]:
    """Return what is known of an episode beside what its agent sees: for what it decides."""
    asked = batch.asked[place]
    return {
        "job": int(
            asked[JOB]
        ),  # -1 where a node is asked for its power cap, or the episode is over
        "node": int(asked[CAPPED]),  # that node, else -1
        "head": (*HEADS, "over")[asked[HEAD]],
        "candidates": int(asked[CANDIDATES]),
        "world": int(batch.world_of[place]),
    }
