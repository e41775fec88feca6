"""A releaser beside a namespace whose patches hang, as with an admission webhook that is away."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from greensched_core.clock import ManualClock
from tests.operator.annotated_work import NOW_S, marks, stored
from tests.operator.release.test_blind_releaser import JOBS, releasing, until


def due_job(name: str, namespace: str) -> dict[str, Any]:
    job = stored(name, marks(until_s=NOW_S))
    job["metadata"] |= {"namespace": namespace}
    return job


async def test_work_that_is_due_later_is_started_while_all_of_another_namespace_hangs() -> None:
    jobs = [due_job(f"hangs-{number}", "slow") for number in range(20)]
    asked: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method == "PATCH":
            asked.append(path.rpartition("/")[2])
            if "/slow/" in path:
                await asyncio.Event().wait()
        items = jobs if path == JOBS else []
        return httpx.Response(200, content=json.dumps({"metadata": {}, "items": items}))

    async with releasing(answer, ManualClock(NOW_S + 1e6)) as releaser:
        await until(lambda: "hangs-0" in asked)
        jobs.append(due_job("quick", "other"))
        await until(lambda: "quick" in asked)
        assert asked.count("hangs-0") == 1, "what is in flight is not asked for again"
        assert releaser.alive() == ""
