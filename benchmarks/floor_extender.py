"""A lower bound for our extender: it watches the cluster and runs the model, but decides nothing.

It is our extender's process with watches, snapshot and HTTP, but another handler. The handler
decodes names as the no-op extender does, runs the shipped model on prepared features, and returns
all names. Our extender also computes costs, encoding and scores.
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
from greensched_extender.__main__ import Process
from greensched_extender.metrics import RequestOutcome
from greensched_extender.service import ExtenderReply
from greensched_extender.settings import ExtenderSettings
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES


async def main() -> None:
    """Serve until killed."""
    settings = load_settings(ExtenderSettings, [])
    set_up_logs("extender", settings.log_level)
    async with ApiClient(settings.api_access()) as client, httpx.AsyncClient() as http:
        process = Process(settings, client, http, WallClock())
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
        await process.run(asyncio.Event())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        sys.exit(runner.run(main()))
