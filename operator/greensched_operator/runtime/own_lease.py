"""A Lease that this process writes."""

from dataclasses import dataclass

from greensched_core.kubernetes_api import ApiClient


@dataclass(frozen=True, slots=True)
class OwnLease:
    """The client that writes a Lease, the Lease's namespace and name, and the holder to write."""

    client: ApiClient
    namespace: str
    name: str
    identity: str
