"""What a pod's conditions tell, as a watch decodes them."""

from collections.abc import Iterable

import msgspec


class PodCondition(msgspec.Struct):
    """A condition of a Job or a pod, as far as we read it."""

    type: str = ""
    status: str = ""
    message: str = ""


def why_unplaced(conditions: Iterable[PodCondition]) -> str:
    """Return what a scheduler said last of why no node took a pod; "" if none has."""
    refused = (
        each.message
        for each in conditions
        if each.type == "PodScheduled" and each.status == "False"
    )
    return next(refused, "")
