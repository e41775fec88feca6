"""Reads the conditions of pods and Jobs, as a watch decodes them."""

from collections.abc import Iterable

import msgspec


class PodCondition(msgspec.Struct):
    """The fields that we read of a condition of a Job or a pod."""

    type: str = ""
    status: str = ""
    message: str = ""


def why_unplaced(conditions: Iterable[PodCondition]) -> str:
    """Return a scheduler's last reason why no node fits a pod; "" if there is none."""
    refused = (
        each.message
        for each in conditions
        if each.type == "PodScheduled" and each.status == "False"
    )
    return next(refused, "")
