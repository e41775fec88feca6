"""kopf runs as a user that has no name, as uid 65532 of our images has none."""

from __future__ import annotations

import asyncio
import getpass
from typing import TYPE_CHECKING, NoReturn

import pytest

from greensched_operator.controller.job_watch import run_kopf
from tests.operator.controller.test_kopf_ends import FirstEvent

if TYPE_CHECKING:
    from tests.operator.conftest import Place

PATIENCE_S = 30.0


def nobody() -> NoReturn:
    """Raise what Python 3.12 and earlier raise where the uid has no entry in passwd."""
    raise KeyError("getpwuid(): uid not found: 65532")


async def test_kopf_brings_jobs_though_its_user_has_no_name(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", nobody)
    await place.create_job("one")
    events = FirstEvent()
    running = asyncio.create_task(run_kopf(events, place.access, "controller-0"))
    came = asyncio.create_task(events.came.wait())
    done, _ = await asyncio.wait(
        [running, came], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED
    )
    running.cancel()
    ended = await asyncio.gather(running, return_exceptions=True)
    assert came in done, f"kopf ended: {ended}"
