"""Tests of functions that are compiled as parts of their callers."""

from typing import Any, cast

import pytest

from greensched_policies.compiling.compiled import fast
from greensched_policies.compiling.linked import Linked


@fast
def halved(amount: float) -> float:
    """Return half of an amount that is positive."""
    if amount < 0.0:
        raise ValueError(amount)
    return amount / 2.0


@fast
def quartered(amount: float) -> float:
    """Return a quarter of an amount that is positive."""
    return halved(halved(amount))


def signatures(function: Any) -> list[Any]:
    """Return for what arguments a function has machine code of its own."""
    return list(cast(Linked, function).whole.signatures)


def test_only_what_python_calls_gets_machine_code_of_its_own() -> None:
    assert quartered(8.0) == 2.0
    assert (len(signatures(quartered)), len(signatures(halved))) == (1, 0)  # which no test calls


@fast
def eighth_of(amount: float) -> float:
    """Return an eighth of an amount that is positive."""
    return quartered(halved(amount))


def test_a_part_can_also_be_called_from_python() -> None:
    assert eighth_of(8.0) == 1.0
    assert quartered(8.0) == 2.0


def test_what_a_part_raises_tells_the_value_it_was_called_with() -> None:
    with pytest.raises(ValueError, match="-8") as refused:
        quartered(-8.0)
    assert refused.value.args == (-8.0,)
