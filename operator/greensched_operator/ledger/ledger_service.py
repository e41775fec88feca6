"""The leader's ledger as a whole: database, writer, routes, and recorder of placements."""

import asyncio
from collections.abc import Callable

from prometheus_client import CollectorRegistry
from starlette.routing import Route

from greensched_core.clock import Clock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.ledger.extender_decisions import ExtenderReplicas
from greensched_operator.ledger.metrics import LedgerMetrics
from greensched_operator.ledger.placement_recording import PlacementRecorder
from greensched_operator.ledger.routes import ledger_routes
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.ledger.writer import LedgerWriter, WriterLimits
from greensched_operator.runtime.settings import OperatorSettings


class LedgerService:
    """All parts of the ledger, wired; nothing starts before `start`."""

    def __init__(
        self,
        settings: OperatorSettings,
        access: ApiAccess,
        client: ApiClient,
        clock: Clock,
        registry: CollectorRegistry,
        placement_lost: Callable[[], None],
    ) -> None:
        """`placement_lost` is called for each placed pod that is not recorded for lack of time."""
        metrics = LedgerMetrics(registry)
        self.store = LedgerStore(settings.ledger)
        self._writer = LedgerWriter(
            self.store,
            clock=clock,
            count_lost=metrics.count_lost,
            count_written=metrics.count_written,
            limits=WriterLimits(keep_s=settings.ledger_keep_days * 86_400.0),
        )
        metrics.observe(self._writer)
        self.write = self._writer.write
        self._extenders = ExtenderReplicas(access, client, settings.namespace, clock)
        self.placements = PlacementRecorder(self._extenders, self.write, clock, placement_lost)

    def routes(self) -> list[Route]:
        """Return the routes that serve it, for a listener on loopback."""
        return ledger_routes(self.store)

    def start(self) -> None:
        """Start the writer."""
        self._writer.start()

    async def stop(self) -> None:
        """Write the waiting records and close everything."""
        await self._extenders.close()
        await asyncio.to_thread(self._writer.stop)
        self.store.close()
