"""Counts writes to the API server by user, kind and object, from its audit log."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

AUDIT_LOG = "audit.log"
_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources: [{group: coordination.k8s.io, resources: [leases]}]
  - level: Metadata
"""


def audit_flags(folder: Path) -> tuple[str, ...]:
    """Return the API server's flags that log all writes except of leases to a folder."""
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY)
    return f"--audit-policy-file={policy}", f"--audit-log-path={folder / AUDIT_LOG}"


def writes_of(log: Path, user: str) -> Counter[str]:
    """Return the successful writes of users whose name starts with `user`, by kind.

    A kind is a verb and a resource, such as "patch jobs" or "update gridsignals/status".
    """
    counts: Counter[str] = Counter()
    for verb, at in _written(log, user):
        part = f"/{at['subresource']}" if "subresource" in at else ""
        counts[f"{verb} {at['resource']}{part}"] += 1
    return counts


def writes_to(log: Path, user: str) -> Counter[str]:
    """Return the successful writes of such users by the name of the object that was written."""
    return Counter(at.get("name", "") for _, at in _written(log, user))


def _written(log: Path, user: str) -> Iterator[tuple[str, dict[str, str]]]:
    for line in log.read_text().splitlines():
        event = json.loads(line)
        code = event.get("responseStatus", {}).get("code", 0)
        if event["user"]["username"].startswith(user) and 200 <= code < 300:
            yield event["verb"], event["objectRef"]
