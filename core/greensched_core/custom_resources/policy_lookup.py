"""Which GreenPolicy a workload follows: the one it names, its namespace's, or the cluster's.

And where the API server has them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from greensched_core import labels

DEFAULT_NAME = "default"  # name of the policy that a namespace, or the cluster, follows
GREEN_POLICIES_PATH = f"{labels.API}/{labels.GREEN_POLICIES}"  # in all namespaces

Policy = TypeVar("Policy")


def green_policies_in(namespace: str) -> str:
    """Return the path of the GreenPolicies of a namespace."""
    return f"{labels.API}/namespaces/{namespace}/{labels.GREEN_POLICIES}"


class PolicyOrigin(StrEnum):
    """Why a workload follows a policy."""

    NAMED = "annotation"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    BUILT_IN = "built-in"


class FoundPolicy(NamedTuple, Generic[Policy]):
    """The policy that a workload follows; None if there is none."""

    policy: Policy | None
    origin: PolicyOrigin
    is_named_missing: bool = False  # the workload names a policy that does not exist


def find_policy(
    policies: Mapping[tuple[str, str], Policy],
    namespace: str,
    name: str | None,
    cluster_namespace: str,
) -> FoundPolicy[Policy]:
    """Return the policy of a workload in a namespace, which may name one; never raises.

    `policies` are by namespace and name. The named policy is looked up in the workload's namespace,
    then in `cluster_namespace`. If there is none, or none is named, the policy `default` of the
    first, then of the second namespace applies.
    """
    wanted = (name or "").strip()
    places = (namespace, cluster_namespace)
    for place in places:
        if wanted and (found := policies.get((place, wanted))) is not None:
            return FoundPolicy(found, PolicyOrigin.NAMED)
    for place in places:
        if (found := policies.get((place, DEFAULT_NAME))) is not None:
            is_clusters = place == cluster_namespace
            origin = PolicyOrigin.CLUSTER if is_clusters else PolicyOrigin.NAMESPACE
            return FoundPolicy(found, origin, bool(wanted))
    return FoundPolicy(None, PolicyOrigin.BUILT_IN, bool(wanted))
