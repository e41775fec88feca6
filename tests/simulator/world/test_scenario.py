import copy
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_extender.settings import ExtenderSettings
from greensched_simulator.scenario.assumptions import Assumptions, ScenarioWeights
from greensched_simulator.scenario.model import CarbonFile, SlackClass
from greensched_simulator.world.scenario_loading import (
    Scenario,
    load_scenario,
    parse_scenario,
    schema_of_scenarios,
)

ROOT = Path(__file__).parents[3]
GALLERY = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
DATA = Path(os.environ.get("GREENSCHED_DATA") or ROOT.parent / "shared" / "data")

SOUND: dict[str, Any] = {
    "name": "sound",
    "start": "2023-06-01T00:00:00Z",
    "length": "2d",
    "cluster": {"nodes": [{"name": "node", "count": 2, "hardware": "epyc-7763-1s",
                           "cpu_cores": 128, "memory": "512Gi", "zone": "NO"}]},
    "grids": {"NO": {"carbon": {"shape": "hydro"}, "price": {"constant": 50, "unit": "EUR/MWh"}}},
    "workload": {"generator": {"jobs": 10}},
}  # fmt: skip
HOURS = "time_utc,value\n2023-06-01T00:00:00,10\n2023-06-01T01:00:00,20\n"


def with_changes(**changes: Any) -> dict[str, Any]:
    """Return the sound scenario with entries changed by path: `cluster__nodes__0__count=0`."""
    content = copy.deepcopy(SOUND)
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place: Any = content
        for part in way:
            place = place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return content


def written(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def test_units_are_read_where_they_stand(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, SOUND))
    assert scenario.start_s == 1_685_577_600.0
    assert scenario.length_s == 2 * 86_400
    assert scenario.cluster.nodes[0].memory == 512 * 2**30
    assert list(scenario.grids) == ["NO"]  # Norway, which YAML 1.1 takes for `false`
    assert math.isinf(scenario.workload.slack)  # type: ignore[arg-type] # one for all


def test_slack_may_go_by_runtime() -> None:
    slack = [{"shorter_than": "2h", "may_wait": "6h"}, {"may_wait": "none"}]
    scenario = parse_scenario(with_changes(workload__slack=slack))
    assert scenario.workload.slack == [
        SlackClass.model_construct(shorter_than=7_200.0, may_wait=21_600.0),
        SlackClass.model_construct(shorter_than=None, may_wait=math.inf),
    ]


def test_what_is_assumed_is_what_the_extender_assumes() -> None:
    extender, assumed, weights = ExtenderSettings(), Assumptions(), ScenarioWeights()
    assert assumed.utilisation_ratio == extender.utilisation_ratio
    assert assumed.gpu_ratio == extender.gpu_ratio
    assert assumed.empty_nodes_sleep == extender.empty_nodes_sleep
    assert weights.cost == extender.weight_cost
    assert weights.carbon == extender.weight_carbon
    assert weights.performance == extender.weight_performance
    assert load_nodes_pue() == extender.default_pue


def load_nodes_pue() -> float:
    return parse_scenario(SOUND).cluster.nodes[0].pue


GROUP = SOUND["cluster"]["nodes"][0]
FAULTS = [
    ({"name": "Big Name"}, "name", "does not fit"),
    ({"colour": "red"}, "colour", "is not known here"),
    ({"workload__generatr": {}}, "workload.generatr", "not known here (close: generator"),
    ({"start": None}, "start", "is missing"),
    ({"start": "2023-06-01T00:00:00"}, "start", "is not an RFC 3339 timestamp"),
    ({"length": 7}, "length", "7 has no unit; write for example 90s, 6h or 7d"),
    ({"length": "0s"}, "length", "greater than 0"),
    ({"length": "week"}, "length", "is not a duration"),
    ({"seed": -1}, "seed", "greater than or equal to 0 (given -1)"),
    ({"seed": "1"}, "seed", "valid integer"),
    ({"currency": "euro"}, "currency", "does not fit"),
    ({"cluster__nodes": []}, "cluster.nodes", "at least 1"),
    ({"cluster__nodes__0__hardware": "epyc-7763"}, "cluster.nodes[0].hardware", "(close: epyc-7"),
    ({"cluster__nodes__0__hardware": None}, "cluster.nodes[0]", "name its hardware"),
    ({"cluster__nodes__0__curve_watts": [1, 2]}, "cluster.nodes[0].curve_watts", "11 watts"),
    ({"cluster__nodes__0__memory": "64GB"}, "cluster.nodes[0].memory", "not a Kubernetes quantity"),
    ({"cluster__nodes__0__cpu_cores": 0}, "cluster.nodes[0].cpu_cores", "greater than 0"),
    (
        {"cluster__nodes__0__gpus": {"model": "a100", "count": 2}},
        "cluster.nodes[0].gpus.model",
        "a100-sxm",
    ),
    ({"cluster__nodes__0__sleep": {"watts": 9}}, "cluster.nodes[0].sleep.wake", "is missing"),
    (
        {"cluster__nodes__0__sleep": {"watts": 900, "wake": "1m"}},
        "cluster.nodes[0].sleep.watts",
        "a node idles at",
    ),
    (
        {"cluster__nodes__0__sleep": {"watts": 9, "wake": "1m", "wake_watts": 8}},
        "cluster.nodes[0].sleep.wake_watts",
        "less than the 9 W asleep",
    ),
    (
        {
            "cluster__nodes__0__sleep": {"watts": 9, "wake": "1m"},
            "assumptions": {"empty_nodes_sleep": True},
        },
        "cluster.nodes[0].sleep",
        "assumptions.empty_nodes_sleep lets all nodes sleep at no cost: remove either",
    ),
    ({"cluster__nodes__0__zone": "SE"}, "cluster.nodes[0].zone", "'SE' has no grid"),
    ({"cluster__nodes__0__zone": "SE"}, "grids.NO", "no node is in this zone"),
    ({"cluster__nodes__0__zone": "NO2"}, "grids.NO", "no node is in this zone (close: NO2)"),
    ({"cluster__nodes": [GROUP, GROUP]}, "cluster.nodes[1].name", "names another group"),
    ({"grids__NO__carbon": 300}, "grids.NO.carbon", "write one of `file`, `constant` and `shape`"),
    (
        {"grids__NO__carbon": {"shape": "coal", "constant": 1}},
        "grids.NO.carbon",
        "write one of `file`",
    ),
    ({"grids__NO__carbon__shape": "wind"}, "grids.NO.carbon.shape", "'solar', 'hydro' or 'coal'"),
    ({"grids__NO__price__unit": "NOK/MWh"}, "grids.NO.price.unit", "add it to exchange_rates"),
    ({"grids__NO__price__unit": "MWh"}, "grids.NO.price.unit", "does not fit"),
    ({"grids__NO__forecast_error": 2}, "grids.NO.forecast_error", "less than or equal to 1"),
    (
        {
            "grids__SE": {
                "carbon": {"constant": 1},
                "marginal": {"constant": 2},
                "price": {"constant": 3, "unit": "EUR/MWh"},
            }
        },
        "grids.NO",
        "has no marginal carbon, but SE has",
    ),
    ({"cluster__nodes__0__embodied": {"kg": 0}}, "cluster.nodes[0].embodied.kg", "greater than 0"),
    ({"workload__suspend": {"share": 2}}, "workload.suspend.share", "less than or equal to 1"),
    ({"workload__suspend": {"startup": 60}}, "workload.suspend.startup", "60 has no unit"),
    ({"workload__elastic": [{"throughput": [1, 2]}]}, "workload.elastic", "give suspend, too"),
    (
        {"workload__suspend": {}, "workload__elastic": [{"throughput": [1, 2]}] * 2},
        "workload.elastic",
        "more than 1 together",
    ),
    (
        {"workload__elastic": [{"throughput": [2, 3]}]},
        "workload.elastic[0].throughput",
        "begin with 1",
    ),
    (
        {"workload__elastic": [{"throughput": [1, 2, 1.5]}]},
        "workload.elastic[0].throughput",
        "never fall",
    ),
    (
        {"workload__elastic": [{"throughput": [1]}]},
        "workload.elastic[0].throughput",
        "at least 2 items",
    ),
    ({"workload": {}}, "workload", "give either trace or generator"),
    ({"workload__trace": {"file": "a.csv"}}, "workload", "give either trace or generator"),
    ({"workload__trace": {"file": "a.csv"}}, "workload.trace.file", "there is no file"),
    ({"workload__generator": {}}, "workload.generator", "either its number of jobs or"),
    ({"workload__load": 0.5}, "workload.generator", "either its number of jobs or"),
    (
        {"workload__generator__runtime_shortest": "3d"},
        "workload.generator.runtime_shortest",
        "is longer than runtime_longest",
    ),
    ({"workload__slack": 6}, "workload.slack", "6 has no unit"),
    ({"workload__slack": []}, "workload.slack", "the last has none"),
    (
        {"workload__slack": [{"shorter_than": "1h", "may_wait": "soon"}]},
        "workload.slack[0].may_wait",
        "is not a duration",
    ),
    (
        {
            "workload__slack": [
                {"shorter_than": "2h", "may_wait": "6h"},
                {"shorter_than": "1h", "may_wait": "6h"},
                {"may_wait": "6h"},
            ]
        },
        "workload.slack",
        "must grow",
    ),
]


@pytest.mark.parametrize(("changes", "place", "reason"), FAULTS)
def test_a_fault_is_reported_with_its_place(
    changes: dict[str, Any], place: str, reason: str
) -> None:
    with pytest.raises(BadInput) as told:
        parse_scenario(with_changes(**changes))
    lines = [line.strip() for line in str(told.value).splitlines()[1:]]
    assert any(line.startswith(f"{place}: ") and reason in line for line in lines), lines


def test_what_was_left_out_is_no_fault() -> None:
    with pytest.raises(BadInput, match="a node idles at") as told:
        parse_scenario(with_changes(cluster__nodes__0__sleep={"watts": 9000, "wake": "1m"}))
    assert "wake_watts" not in str(told.value)


def test_all_faults_are_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "name: bad\nseed: 1\nseed: 2\nstart: today\nlength: 2d\n"
        "cluster:\n  nodes:\n    - {name: a, count: 0, zone: SUNY, cpu_cores: 1, memory: 1Gi}\n"
        "grids:\n  SUNNY: {carbon: {shape: solar}, price: {constant: 1, unit: USD/MWh}}\n"
        "workload: {}\n"
    )
    with pytest.raises(BadInput) as told:
        load_scenario(path)
    head, *lines = [line.strip().split(": ")[0] for line in str(told.value).splitlines()]
    assert head == f"{path} has 8 faults:"
    assert lines == [
        "seed (line 3)",
        "start (line 4)",
        "cluster.nodes[0].count (line 8)",
        "cluster.nodes[0].zone (line 8)",
        "cluster.nodes[0] (line 8)",
        "grids.SUNNY (line 10)",
        "grids.SUNNY.price.unit (line 10)",
        "workload (line 11)",
    ]


def grid_of_file(**more: str) -> dict[str, str]:
    return {"file": "grid.csv", "time_column": "time_utc", "column": "value"} | more


def test_files_are_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(HOURS)
    content = with_changes(grids__NO__carbon=grid_of_file(), length="2h")
    carbon = load_scenario(written(tmp_path, content)).grids["NO"].carbon
    assert isinstance(carbon, CarbonFile)
    assert carbon.file == tmp_path / "grid.csv"


def test_a_path_may_begin_with_a_variable(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(HOURS)
    carbon = grid_of_file(file="${FOLDER}/grid.csv")
    path = written(tmp_path, with_changes(grids__NO__carbon=carbon, length="1h"))
    load_scenario(path, {"FOLDER": str(tmp_path)})
    with pytest.raises(BadInput, match="needs the variable FOLDER"):
        load_scenario(path, {})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"length": "3h"}, "change start or length", id="ends-too-early"),
        pytest.param({"start": "2023-05-31T23:59:59Z"}, "change start", id="begins-too-late"),
        pytest.param({"grids__NO__carbon__column": "c"}, "lacks the columns c", id="column"),
        pytest.param({"grids__NO__carbon__unit": "g"}, "'g/kWh', 'kg/MWh' or 'lb/MWh'", id="unit"),
    ],
)
def test_a_grid_file_that_does_not_do_is_reported(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    (tmp_path / "grid.csv").write_text(HOURS)
    content = with_changes(grids__NO__carbon=grid_of_file(), length="2h")
    load_scenario(written(tmp_path, content))
    for path, value in changes.items():
        *way, last = path.split("__")
        place = content
        for part in way:
            place = place[part]
        place[last] = value
    with pytest.raises(BadInput, match=r"(?s)grids\.NO\.carbon.*" + reason):
        load_scenario(written(tmp_path, content))


def test_the_faults_of_a_trace_are_reported_with_the_others(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\na,0,-1,1,1,0\n"
    )
    content = with_changes(seed=-1, workload={"trace": {"file": "jobs.csv"}})
    with pytest.raises(BadInput, match=r"(?s)2 faults.*row 2: runtime_s is -1, not above 0"):
        load_scenario(written(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a: [", "is not valid YAML", id="no-yaml"),
        pytest.param("", "is empty; docs/scenarios.md shows", id="empty"),
        pytest.param("\n# later\n", "is empty", id="comment"),
        pytest.param("- a\n", "must hold names", id="list"),
        pytest.param("1: a\n", "must hold names", id="numbers"),
        pytest.param("&a [*a]", "is not valid YAML|must hold", id="endless"),
        pytest.param("a: 1\n---\nb: 2\n", "holds 2 YAML documents; it may hold 1", id="two"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=reason):
        load_scenario(path)


def places(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every entry of nested mappings and lists."""
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in inner:
        yield (*way, key)
        if isinstance(value, dict | list):
            yield from places(value, (*way, key))


odd = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.just("6h"), st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text() | st.integers() | st.none(), st.integers()),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(list(places(SOUND))), odd), min_size=1, max_size=3))
def test_no_content_crashes_the_loader(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    content = copy.deepcopy(SOUND)
    for way, value in changes:
        place: Any = content
        try:
            for part in way[:-1]:
                place = place[part]
            place[way[-1]] = value
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took its place away
    try:
        assert isinstance(parse_scenario(content), Scenario)
    except BadInput as told:
        assert "fault" in str(told)


def test_every_field_is_documented_in_the_schema() -> None:
    found = schema_of_scenarios()
    json.dumps(found)
    kinds = [found, *found["$defs"].values()]
    undocumented = [
        f"{kind['title']}.{name}"
        for kind in kinds
        for name, field in kind.get("properties", {}).items()
        if not field.get("description")
    ]
    assert undocumented == []
    assert {"name", "start", "length", "cluster", "grids", "workload"} == set(found["required"])


def test_every_field_of_the_file_stands_in_the_documentation() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    kinds = [schema_of_scenarios(), *schema_of_scenarios()["$defs"].values()]
    names = {name for kind in kinds for name in kind.get("properties", {})}
    assert {name for name in names if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: str(path.stem))
def test_the_gallery_loads(path: Path) -> None:
    if "${" in path.read_text() and not DATA.is_dir():
        pytest.skip(f"no data sets at {DATA}; set GREENSCHED_DATA")
    scenario = load_scenario(path, {"GREENSCHED_DATA": str(DATA)})
    assert scenario.name == path.stem
    assert scenario.description


def test_the_gallery_is_not_empty() -> None:
    assert len(GALLERY) >= 4
