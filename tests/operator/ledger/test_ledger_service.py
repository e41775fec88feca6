"""The leader's ledger as it is wired."""

import ssl
from pathlib import Path

from prometheus_client import CollectorRegistry

from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_operator.ledger.ledger_service import LedgerService
from greensched_operator.runtime.settings import OperatorSettings


async def test_its_gauges_tell_what_waits_and_that_it_can_be_written(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    access = ApiAccess("http://nowhere.test", ssl.create_default_context())
    settings = OperatorSettings(ledger=str(tmp_path / "ledger.db"))
    async with ApiClient(access) as client:
        LedgerService(settings, access, client, WallClock(), registry, lambda: None)
    prefix = "greensched_operator_ledger"
    assert registry.get_sample_value(f"{prefix}_usable") == 1
    assert registry.get_sample_value(f"{prefix}_records_waiting") == 0
