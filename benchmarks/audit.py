"""Counts writes to the API server by user, kind and object, from its audit log."""

import json
from collections import Counter
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


def writes_of(log: Path, user: str) -> tuple[Counter[str], Counter[str]]:
    """Return the successful writes of users whose name starts with `user`, by kind and by object.

    A kind is a verb and a resource, such as "patch jobs" or "update gridsignals/status"; an object
    has its name.
    """
    by_kind, by_name = Counter[str](), Counter[str]()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        code = event.get("responseStatus", {}).get("code", 0)
        if event["user"]["username"].startswith(user) and 200 <= code < 300:
            at = event["objectRef"]
            part = f"/{at['subresource']}" if "subresource" in at else ""
            by_kind[f"{event['verb']} {at['resource']}{part}"] += 1
            by_name[at.get("name", "")] += 1
    return by_kind, by_name
