"""Jobs that fit no node and services that cannot be served are told beside all other faults."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_core.errors import BadInput
from greensched_simulator.world.scenario_loading import load_scenario

WEB = {
    "name": "web",
    "requests": {"generator": {"rate_per_s": 5}},
    "service_time": {"mean": "80ms"},
    "objective": {"within": "900ms"},
    "replica": {"cpu_cores": 2, "memory": "1Gi"},
}
LARGE = WEB | {"name": "large", "replica": {"cpu_cores": 64, "memory": "1Gi"}}
SLOW = WEB | {"name": "slow", "objective": {"within": "90ms"}}
TUNE = {"name": "tune", "jobs": 1, "model": 7e9, "tokens": 1e9, "gpu": "a100-sxm",
        "cpu_cores": 99, "memory": "1Gi"}  # fmt: skip
NODE = {"name": "node", "count": 2, "hardware": "epyc-7763-1s", "cpu_cores": 32,
        "memory": "512Gi", "zone": "NO", "gpus": {"model": "a100-sxm", "count": 2}}  # fmt: skip
SOUND: dict[str, Any] = {
    "name": "sound",
    "start": "2023-06-01T00:00:00Z",
    "length": "2h",
    "cluster": {"nodes": [NODE]},
    "grids": {
        "NO": {
            "carbon": {"file": "grid.csv", "time_column": "time_utc", "column": "value"},
            "price": {"constant": 50, "unit": "EUR/MWh"},
        }
    },
    "workload": {"generator": {"jobs": 10, "cpu_cores": [8]}},
}
ALL_FIT_NONE = {"generator": {"jobs": 10, "cpu_cores": [64]}}
HOURS = "time_utc,value\n" + "".join(f"2023-06-01T{hour:02}:00:00,10\n" for hour in range(4))


def faults(folder: Path, hours: str = HOURS, **changes: Any) -> dict[str, str]:
    """Return the reason of each fault of the sound scenario with changes, by its place."""
    (folder / "grid.csv").write_text(hours)
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(copy.deepcopy(SOUND | changes), sort_keys=False))
    try:
        load_scenario(path, {})
    except BadInput as told:
        lines = [line.strip().split(": ", 1) for line in str(told).splitlines()[1:]]
        return {place.partition(" (line")[0]: reason for place, reason in lines}
    return {}


def test_the_sound_scenario_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, services=[WEB]) == {}


def test_faults_of_all_kinds_are_reported_at_once(tmp_path: Path) -> None:
    told = faults(
        tmp_path,
        length="5h",
        cluster={"nodes": [NODE | {"pue": 9, "zone": "NO2"}]},
        workload=ALL_FIT_NONE | {"trainings": [TUNE], "slack": "long"},
        services=[LARGE, WEB, SLOW],
        weights={"crabon": 1},
    )
    assert {place: reason[:34] for place, reason in told.items()} == {
        "cluster.nodes[0].zone": "'NO2' has no grid (close: NO); add",
        "cluster.nodes[0].pue": "it should be less than or equal to",
        "grids.NO": "no node is in this zone (close: NO",
        "grids.NO.carbon.file": f"{tmp_path}/grid.csv holds"[:34],
        "workload.generator": "10 of 10 jobs fit no node; the lar",
        "workload.trainings[0]": "1 of 1 jobs fit no node; the large",
        "workload.slack": "'long' is not a duration; write fo",
        "services[0]": "service large: a replica requests ",
        "services[2]": "service slow: on a node of speed 1",
        "weights.crabon": "is not known here (close: carbon);",
    }


def test_a_fault_keeps_its_place_in_a_list_of_which_others_cannot_be_read(tmp_path: Path) -> None:
    told = faults(tmp_path, services=[{"name": "a"}, WEB, {"name": "b", "replica": {}}, LARGE])
    assert "which no node has" in told["services[3]"]
    assert not {"services[0]", "services[1]", "services[2]"} & told.keys()


def test_jobs_of_a_trace_are_tried_as_well(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,1,64,1,0\n"
    )
    told = faults(tmp_path, workload={"trace": {"file": "jobs.csv"}}, seed=-1)
    assert told.keys() == {"seed", "workload.trace"}


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        pytest.param(
            {"length": "soon", "workload": ALL_FIT_NONE},
            {"length", "workload.generator"},
            id="jobs-by-number-do-not-rest-on-the-length",
        ),
        pytest.param(
            {"length": "soon", "workload": {"load": 9, "generator": {"cpu_cores": [64]}}},
            {"length"},
            id="jobs-by-load-do",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE, "services": [LARGE, SLOW],
             "cluster": {"nodes": [NODE | {"hardware": "epyc-7736-1s"}]}},
            {"cluster.nodes[0].hardware", "workload.generator", "services[0]"},
            id="what-fits-does-not-rest-on-speed",
        ),
        pytest.param(
            {"services": [LARGE],
             "cluster": {"nodes": [NODE, NODE | {"name": "old", "hardware": None}]}},
            {"cluster.nodes[1]", "services[0]"},
            id="nor-does-it-where-no-watts-are-told",
        ),
        pytest.param(
            {"workload": {"load": 9, "generator": {"cpu_cores": [64]}},
             "cluster": {"nodes": [NODE | {"speed": -1}]}},
            {"cluster.nodes[0].speed"},
            id="how-many-jobs-make-a-load-does",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE,
             "assumptions": {"gpu_ratio": 7, "empty_nodes_sleep": "yes"}},
            {"assumptions.gpu_ratio", "assumptions.empty_nodes_sleep", "workload.generator"},
            id="nor-on-what-gpus-draw",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE, "assumptions": {"share_gpus": "yes"}},
            {"assumptions.share_gpus"},
            id="but-on-whether-they-are-shared",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE | {"skip_unplaceabel": True}},
            {"workload.skip_unplaceabel"},
            id="a-misspelt-name-may-be-what-mends-it",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE, "services": [LARGE],
             "cluster": {"nodes": [NODE, NODE | {"name": "big", "cpu_cores": "many"}]}},
            {"cluster.nodes[1].cpu_cores"},
            id="all-rests-on-the-nodes",
        ),
        pytest.param(
            {"services": [WEB | {"service_time": {"mean": "soon"}}, LARGE]},
            {"services[0].service_time.mean", "services[1]"},
            id="a-service-goes-as-a-whole",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE, "cluster": {"nodes": [NODE, NODE]}},
            {"cluster.nodes[1].name", "workload.generator"},
            id="nothing-rests-on-the-names-of-nodes",
        ),
        pytest.param(
            {"workload": ALL_FIT_NONE, "services": [LARGE],
             "cluster": {"nodes": [NODE | {"name": "A Node"}]}},
            {"cluster.nodes[0].name", "workload.generator", "services[0]"},
            id="whatever-these-are",
        ),
        pytest.param(
            {"workload": {"generator": {"jobs": 0}}, "services": [LARGE]},
            {"workload.generator.jobs", "services[0]"},
            id="services-do-not-rest-on-the-jobs",
        ),
        pytest.param(
            {"workload": {"generator": {"jobs": 9}, "trainings": [{"name": "a"}, TUNE]}},
            {"workload.trainings[0]", "workload.trainings[1]"},
            id="trainings-do-not-rest-on-each-other",
        ),
    ],
)  # fmt: skip
def test_of_what_rests_on_a_fault_nothing_is_said(
    tmp_path: Path, changes: dict[str, Any], places: set[str]
) -> None:
    told = faults(tmp_path, **changes)
    assert {place for place in told if not place.startswith("workload.trainings[0].")} == (
        places - {"workload.trainings[0]"}
    )


def test_a_grid_file_without_any_value_in_time_is_reported(tmp_path: Path) -> None:
    empty = HOURS.replace("T00:00:00,10", "T00:00:00,").replace("T01:00:00,10", "T01:00:00,")
    told = faults(tmp_path, hours=empty)
    assert "holds no value from 2023-06-01T00:00:00Z to" in told["grids.NO.carbon.file"]
    assert faults(tmp_path, hours=HOURS.replace("T00:00:00,10", "T00:00:00,")) == {}


TRAIN = TUNE | {"cpu_cores": 8}


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        pytest.param({}, True, id="none-fits"),
        pytest.param({"generator": {"jobs": 10, "cpu_cores": [8, 64]}}, False, id="some-fit"),
        pytest.param({"trainings": [TRAIN]}, False, id="trainings-do"),
        pytest.param({"trainings": [TRAIN | {"jobs": 0}]}, False, id="trainings-might"),
        pytest.param({"trainings": [TUNE], "slack": "soon"}, True, id="beside-another-fault"),
    ],
)
def test_that_all_jobs_would_be_left_out_is_a_fault(
    tmp_path: Path, changes: dict[str, Any], is_told: bool
) -> None:
    told = faults(tmp_path, workload=ALL_FIT_NONE | {"skip_unplaceable": True} | changes)
    reason = "leaves no job: no job that arrives within the length fits a node; give larger nodes"
    assert told.get("workload.skip_unplaceable", "").startswith(reason) is is_told


def test_only_jobs_within_the_length_count_for_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,1,64,1,0\nb,7200,1,1,1,0\n"
    )
    workload = {"trace": {"file": "jobs.csv"}, "skip_unplaceable": True}
    assert faults(tmp_path, workload=workload).keys() == {"workload.skip_unplaceable"}
    assert faults(tmp_path, workload=workload, length="3h") == {}


def test_arrivals_that_no_load_can_press_are_reported_with_the_load(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,1,1,1,0\nb,0,1,1,1,0\n"
    )
    told = faults(tmp_path, workload={"trace": {"file": "jobs.csv"}, "load": 0.5})
    assert told == {
        "workload.load": "all jobs arrive at once, so there is no span to change",
    }
