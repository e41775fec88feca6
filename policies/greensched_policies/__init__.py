"""What to prefer: the cost of a candidate, its encoding, rules, models and their guard."""

import os

# onnxruntime's Linux wheels report usage to their maker unless told not to, and read this when
# they are imported. Ours runs in other people's clusters: it phones nobody.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
