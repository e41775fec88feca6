"""A Lease that this process writes."""

from dataclasses import dataclass

from greensched_core.kubernetes_api import ApiClient


@dataclass(frozen=True, slots=True)
class OwnLease:
    """Through which client a Lease is written, where it is, and as whom."""

    client: ApiClient
    namespace: str
    name: str
    identity: str
