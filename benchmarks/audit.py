"""What was written to the API server, by whom, counted from its audit log."""

import json
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
    """Return the API server's flags by which each write is noted in a folder, leases apart."""
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY)
    return f"--audit-policy-file={policy}", f"--audit-log-path={folder / AUDIT_LOG}"


def writes_of(log: Path, user: str) -> int:
    """Return how many writes whoever is called so, at the beginning, made that succeeded."""
    count = 0
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"].startswith(user):
            code = event.get("responseStatus", {}).get("code", 0)
            count += 200 <= code < 300
    return count
