"""No garbage is collected while many workloads are planned; afterwards it is, whatever happens."""

import gc
import threading

import pytest

from greensched_operator.runtime.planning_thread import in_thread, without_collection


async def test_no_garbage_is_collected_meanwhile_and_others_run() -> None:
    assert gc.isenabled()
    own = threading.get_ident()
    assert await in_thread(lambda: (gc.isenabled(), threading.get_ident() == own)) == (False, False)
    assert gc.isenabled()


def test_after_a_fault_it_is_collected_again() -> None:
    def fails() -> None:
        raise KeyError("zone")

    with pytest.raises(KeyError):
        without_collection(fails)
    assert gc.isenabled()


def test_who_has_switched_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        without_collection(list)
        assert not gc.isenabled()
    finally:
        gc.enable()
