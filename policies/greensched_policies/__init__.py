"""What GreenSched prefers: rules and learned models over arrays, without Kubernetes and HTTP.

From the bottom up: `costs` (what work takes), `encoding` (what a policy sees), `rules` (one file
each, named in `rules/catalogue.py`), `planning` (what runs when), `learned` (ONNX bundles) and
`billing` (what a schedule took). Begin with `rules/where/least_carbon.py` and `rules/catalogue.py`.
"""

import os

# onnxruntime's Linux wheels report usage to their maker unless told not to, and read this when
# they are imported. Ours runs in other people's clusters: it phones nobody.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
