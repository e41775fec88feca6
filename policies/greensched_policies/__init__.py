"""Policies of GreenSched: rules and learned models over arrays, without Kubernetes and HTTP.

From the bottom up: `costs` (of work), `encoding` (a policy's input), `rules` (by kind, named in
`rules/catalogue.py`), `library` (what decides, compiled ahead of time), `planning` (what runs
when), `learned` (ONNX bundles) and `billing` (of a schedule). `compiling` and `kernel`, from which
the library is made, need numba; only the simulator imports them. Begin with `rules/where.py` and
`rules/catalogue.py`.
"""

import os

# onnxruntime's Linux wheels report usage to their maker unless this is set when they are imported.
# GreenSched runs in other people's clusters and must not send such reports.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
