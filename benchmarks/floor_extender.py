"""Lower bounds for our extender, which tell what its decisions cost.

Both are our extender's process with watches, snapshot and HTTP.

- The floor decides nothing: its handler decodes names as the no-op extender does, runs the shipped
  model on prepared features, and returns all names. Ours also computes costs, encoding and scores.
- With the argument `unranked` it decides as ours, but tells the scheduler the same score for all
  nodes. What ours takes beyond that is what the scheduler and the API server take for the nodes
  that it chooses.
"""

import asyncio
import sys

import httpx
import numpy as np
import orjson
import uvloop

from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.logs import set_up_logs
from greensched_core.settings import load_settings
from greensched_extender import scoring
from greensched_extender.__main__ import Process
from greensched_extender.metrics import RequestOutcome
from greensched_extender.service import ExtenderReply
from greensched_extender.settings import ExtenderSettings
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.library.scores import Scores, spread_scores


def decide_nothing(process: Process) -> None:
    """Let the extender only read names and run the model."""
    context = np.ones((1, len(CONTEXT_FEATURES)), np.float32)
    ready: dict[int, np.ndarray] = {}

    def prioritize(body: bytes) -> ExtenderReply:
        names = orjson.loads(body)["NodeNames"]
        if len(names) not in ready:
            features = np.ones((1, len(NODE_FEATURES), len(names)), np.float32)
            ready[len(names)] = features.transpose((0, 2, 1))
        process.choice.guard.answer(ready[len(names)], context)
        scores = orjson.dumps([{"Host": name, "Score": 0} for name in names])
        return ExtenderReply(200, scores, RequestOutcome.OK)

    vars(process.extender)["prioritize"] = prioritize


def rank_nothing() -> None:
    """Let the extender decide as ever, and write the same score for every node."""

    def same_scores(relative_cost: np.ndarray) -> Scores:
        scores, best = spread_scores(relative_cost)
        return Scores(np.zeros_like(scores), best)

    vars(scoring)["spread_scores"] = same_scores


async def main(is_unranked: bool) -> None:
    """Serve until killed."""
    settings = load_settings(ExtenderSettings, [])
    set_up_logs("extender", settings.log_level)
    async with ApiClient(settings.api_access()) as client, httpx.AsyncClient() as http:
        process = Process(settings, client, http, WallClock())
        if is_unranked:
            rank_nothing()
        else:
            decide_nothing(process)
        await process.run(asyncio.Event())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main(sys.argv[1:] == ["unranked"])))
