"""Each process of the operator watches each resource once: no object is sent to it twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from greensched_core.api_paths import BOUND_AND_RUNNING, UNBOUND
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.objects.watched import EMERGENCY

if TYPE_CHECKING:
    from tests.operator.conftest import Place

# What two watches of one path may select: no object is in both.
DISJOINT = [
    {BOUND_AND_RUNNING, UNBOUND},
    {f"metadata.name={EMERGENCY}", f"metadata.name!={EMERGENCY},metadata.name!=greensched-budgets"},
]


class Counting(ApiClient):
    """Counts the watches that are open, by path and what is selected there."""

    def __init__(self, access: ApiAccess) -> None:
        super().__init__(access)
        self.open: Counter[tuple[str, str]] = Counter()

    @asynccontextmanager
    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        field_selector: str = "",
        timeout_s: int = 290,
        silence_s: float = 120.0,
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with super().watch(
            path, resource_version, field_selector=field_selector, timeout_s=timeout_s,
            silence_s=silence_s,
        ) as events:  # fmt: skip
            self.open[path, field_selector] += 1
            try:
                yield events
            finally:
                self.open[path, field_selector] -= 1


@pytest.mark.parametrize(
    ("part", "watches"),
    [
        pytest.param("controller", 9, id="controller"),  # and kopf's of Jobs
        pytest.param("webhook", 7, id="webhook"),
        pytest.param("releaser", 3, id="releaser"),
    ],
)
async def test_no_object_comes_to_a_process_by_two_watches(
    place: Place, part: str, watches: int
) -> None:
    settings = place.settings.model_copy(update={"kueue": False})
    async with Counting(place.access) as client:
        counted = replace(place, api=client, settings=settings)

        async def are_open() -> bool:
            return client.open.total() >= watches

        async with getattr(counted, part)():
            await counted.until(are_open, "its watches are open")
            await asyncio.sleep(1.0)  # whatever else it begins is open by now
            opened = +client.open
    assert opened.total() == len(opened) == watches, opened
    for path, times in Counter(path for path, _ in opened).items():
        selected = {selector for other, selector in opened if other == path}
        assert times == 1 or selected in DISJOINT, (path, selected)
