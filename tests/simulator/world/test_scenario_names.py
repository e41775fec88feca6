"""How faults are worded: names that YAML reads as numbers, parts without names, rows of a trace."""

from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.world.scenario_loading import load_scenario, parse_scenario

TEXT = """name: small
start: 2023-06-01T00:00:00Z
length: 3h
cluster:
  nodes:
    - {name: n, count: 2, hardware: epyc-7763-1s, cpu_cores: 8, memory: 64Gi, zone: "2023"}
grids:
  "2023": {carbon: {shape: solar}, price: {constant: 50, unit: EUR/MWh}}
workload:
  generator: {jobs: 20, cpu_cores: [1]}
"""


def faults(folder: Path, old: str = "", new: str = "") -> list[str]:
    """Return the lines of a scenario's faults after a change to its text."""
    assert old in TEXT
    path = folder / "scenario.yaml"
    path.write_text(TEXT.replace(old, new) if old else TEXT)
    try:
        load_scenario(path, {})
    except BadInput as told:
        return [line.removeprefix("  ") for line in str(told).splitlines()[1:]]
    return []


def test_a_number_in_quotes_names_a_zone(tmp_path: Path) -> None:
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(
            '  "2023":', "  2023:",
            ["grids.2023 (line 8): 2023 is not text: write it in quotes, as '2023'"],
            id="the-zone-of-nodes-is-text",
        ),
        pytest.param(
            '"2023"', "2023",
            ["cluster.nodes[0].zone (line 6): 2023 is not text: write it in quotes, as '2023'",
             "grids.2023 (line 8): 2023 is not text: write it in quotes, as '2023'"],
            id="nor-is-the-zone-of-nodes",
        ),
        pytest.param(
            '  "2023":', "  1:",
            ["cluster.nodes[0].zone (line 6): '2023' has no grid; add it under grids",
             "grids.1 (line 8): 1 is not text: write it in quotes, as '1'",
             "grids.1 (line 8): no node is in this zone; remove it, or put nodes there"],
            id="another-zone",
        ),
        pytest.param(
            "workload:", "sites:\n  true: {weather: {temperature: {constant: 9}}}\nworkload:",
            ["sites.true (line 10): true is not text: write it in quotes, as 'true'",
             "sites.true (line 10): 'true' has no grid; add it under grids"],
            id="a-site",
        ),
        pytest.param(
            "{jobs: 20,", "{jobs: 20, null: 3,",
            ["workload.generator.null (line 10): null is not text: write it in quotes, as 'null'",
             "workload.generator.null (line 10): is not known here; docs/scenarios.md has all "
             "names"],
            id="in-a-part",
        ),
    ],
)  # fmt: skip
def test_a_name_that_is_no_text_is_reported(
    tmp_path: Path, old: str, new: str, told: list[str]
) -> None:
    assert faults(tmp_path, old, new) == told


def test_a_name_that_is_no_text_is_reported_for_a_mapping_too() -> None:
    with pytest.raises(BadInput, match=r"exchange_rates\.7: 7 is not text"):
        parse_scenario({"name": "small", "exchange_rates": {7: 1.5}})


@pytest.mark.parametrize(
    ("new", "told"),
    [
        pytest.param("workload: 5\n", "must hold names with values (given 5)", id="number"),
        pytest.param("workload: [a]\n", "must hold names with values", id="list"),
        pytest.param("workload:\n", "must hold names with values (given None)", id="nothing"),
    ],
)
def test_a_part_that_holds_no_names_is_reported(tmp_path: Path, new: str, told: str) -> None:
    assert faults(tmp_path, TEXT[TEXT.index("workload:") :], new) == [f"workload (line 9): {told}"]


def test_rows_at_fault_stand_further_in_and_are_skipped_by_what_a_scenario_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,-1,1,1,0\nb,0,1,0,1,0\n"
    )
    told = faults(tmp_path, "generator: {jobs: 20, cpu_cores: [1]}", "trace: {file: jobs.csv}")
    assert told == [
        f"workload.trace.file (line 10): {tmp_path}/jobs.csv has 2 faults; correct it, or leave "
        f"out such rows with skip_faulty: true:",
        "  row 2: runtime_s is -1, not above 0",
        "  row 3: cpu_cores is 0, not above 0",
    ]
