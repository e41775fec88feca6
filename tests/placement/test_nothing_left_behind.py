"""What was started is gone when its context ends."""

import psutil
import pytest

from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.demo.cluster import EXTENDER, SECOND_SCHEDULER, GreenSchedProcesses

pytestmark = pytest.mark.controlplane


def test_extender_and_scheduler_end_with_their_control_plane() -> None:
    with ControlPlane(ControlPlaneOptions(kwok=False, scheduler=False)) as plane:
        greensched = GreenSchedProcesses(plane, BillAssumptions(0.5, 0.6, 1.2))
        greensched.install_chart()
        greensched.start()
        assert EXTENDER in plane.processes and SECOND_SCHEDULER in plane.processes
        processes = [psutil.Process(process.pid) for process in plane.processes.all()]
        processes += [child for each in processes for child in each.children(recursive=True)]
        assert len(processes) >= 5
    assert [process for process in processes if process.is_running()] == []
    assert not plane.folder.exists()
