"""What an agent sees and may answer, in Gymnasium's words."""

from typing import Any

import numpy as np
from gymnasium import spaces

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_simulator.environments.preparation import HEADS, Head
from greensched_simulator.environments.scene_parts import CANDIDATES, HEAD, JOB, PACED
from greensched_simulator.environments.stages import Stage

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


def shape_of(stage: Stage, head: Head) -> tuple[int, int]:
    """Return how many candidates a stage shows of a head, and with how many features."""
    table = stage.tables[head]
    return table.shape[2], table.shape[1]


def seen_on(stage: Stage, head: Head) -> Seen:
    """Return what the scenes of a stage with one head show: views, which each step writes anew."""
    return {
        "candidates": stage.tables[head].transpose((0, 2, 1)),
        "context": stage.context,
        "mask": stage.is_choice,
    }


def told_of(stage: Stage, place: int) -> dict[str, Any]:
    """Return what is known of a scene beside what its agent sees: for what it decides."""
    asked = stage.asked[place]
    return {
        "job": int(asked[JOB]),  # -1 where a node is asked for its level, or the episode is over
        "node": int(asked[PACED]),  # that node, else -1
        "head": (*HEADS, "over")[asked[HEAD]],
        "candidates": int(asked[CANDIDATES]),
        "world": int(stage.world_of[place]),
    }
