"""A bound on ours from below: it follows the cluster and runs the net, and decides nothing.

Our extender's process as it is, watches, snapshot and HTTP, but for the handler: names decoded as
in the do-nothing extender, the shipped net run on ready-made features, all names back. Whatever
costs, encoding and scores take in ours comes on top of this.
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
