import csv
import os
import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")
RESULTS = DATA / "specpower" / "SPECpower-2026-03-09.csv"


@pytest.mark.skipif(not RESULTS.exists(), reason=f"no SPECpower results at {RESULTS}")
def test_every_machine_is_a_published_result() -> None:
    with RESULTS.open(encoding="utf-8", newline="") as file:
        published = {
            (float(row["Result"]), float(row["avg. watts @ active idle"]),
             float(row["avg. watts @ 100%"]), int(row["# Cores"]), int(row["Total Threads"]),
             row["Published"])
            for row in csv.DictReader(file)
        }  # fmt: skip
    text = resources.files("greensched_core.power").joinpath("catalogue.toml").read_text("utf-8")
    strangers = []
    for name, entry in tomllib.loads(text)["machines"].items():
        watts = entry.get("watts", [entry.get("idle_w"), entry.get("full_w")])
        dated = re.search(r"[A-Z][a-z]{2}-\d{4}", entry["source"])
        assert dated is not None, name
        row = (entry["ssj_ops_per_watt"], watts[0], watts[-1], entry["cores"], entry["threads"],
               dated[0])  # fmt: skip
        if row not in published:
            strangers.append((name, row))
    assert strangers == []
