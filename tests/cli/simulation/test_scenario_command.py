import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]
GALLERY = Path(__file__).parents[3] / "examples" / "scenarios"
SOUND = [str(GALLERY / name) for name in ("one-solar-grid.yaml", "hydro-and-coal.yaml")]


def test_sound_scenarios_are_summed_up_in_a_line_each(greensched: Run) -> None:
    done = greensched("scenario", "check", *SOUND)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{SOUND[0]}: ok. one-solar-grid: 20 nodes in 1 zone (SUNNY), 5,")
    assert "20 nodes in 2 zones (HYDRO, COAL)" in second and "jobs in 2d with seed 1" in second


def test_a_scenario_tells_the_format_of_its_trace(greensched: Run, tmp_path: Path) -> None:
    file, text = tmp_path / "traced.yaml", Path(SOUND[1]).read_text()
    generator = text[text.index("  generator:") : text.index("  slack:")]
    traced = text.replace(generator, "  trace: {file: jobs.csv}\n").replace("  load: 0.4\n", "")
    file.write_text(traced)
    (tmp_path / "jobs.csv").write_text("name,arrival_s,runtime_s,cpu_cores,memory_mib,gpus\n"
                                       "a,1700000000,60,4,1024,0\n")  # fmt: skip
    told = greensched("scenario", "check", str(file)).stdout
    assert "\n  jobs.csv: plain CSV, 1 task\n" in told
    (found,) = json.loads(greensched("scenario", "check", str(file), "-o", "json").stdout)
    assert found["trace"] == {
        "file": str(tmp_path / "jobs.csv"), "format": "plain CSV", "tasks": 1
    }  # fmt: skip


def test_all_faults_of_all_files_are_reported_with_their_lines(
    greensched: Run, tmp_path: Path
) -> None:
    spoilt = tmp_path / "spoilt.yaml"
    text = Path(SOUND[1]).read_text()
    spoilt.write_text(text.replace("load: 0.4", "load: 40").replace("zone: COAL", "zone: KOAL"))
    missing = tmp_path / "missing.yaml"
    done = greensched("scenario", "check", str(spoilt), SOUND[0], str(missing))
    assert done.returncode == 2
    assert f"{SOUND[0]}: ok." in done.stdout
    assert f"{spoilt} has 3 faults:" in done.stderr
    for told in ("cluster.nodes[1].zone (line 9): 'KOAL' has no grid (close: COAL)",
                 "workload.load (line 18)", f"there is no file {missing}"):  # fmt: skip
        assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_jobs_that_fit_no_node_are_a_fault_too(greensched: Run, tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_text(Path(SOUND[1]).read_text().replace("[2, 4, 8, 16]", "[2, 256]"))
    done = greensched("scenario", "check", str(large))
    assert (done.returncode, done.stdout) == (2, "")
    assert "jobs fit no node" in done.stderr


def test_runs_tell_the_same_faults_as_the_check(greensched: Run, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.yaml"
    text = Path(SOUND[1]).read_text().replace("[2, 4, 8, 16]", "[2, 256]")
    spoilt.write_text(text + "weights: {crabon: 2}\n")
    told = greensched("scenario", "check", str(spoilt)).stderr
    assert f"{spoilt} has 2 faults:" in told
    for run in (["simulate", "--policy", "spread"], ["compare"]):
        done = greensched(run[0], str(spoilt), *run[1:])
        assert (done.returncode, done.stderr) == (2, told)


def test_what_is_no_scenario_file_is_reported_in_a_line_each(
    greensched: Run, tmp_path: Path
) -> None:
    (tmp_path / "empty.yaml").write_text("")
    names = [str(tmp_path / name) for name in ("missing.yaml", ".", "empty.yaml")]
    done = greensched("scenario", "check", *names)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"greensched: there is no file {tmp_path / 'missing.yaml'}",
        f"greensched: {tmp_path} is a folder; name a scenario file in it",
        f"greensched: {tmp_path / 'empty.yaml'} is empty; docs/scenarios.md shows what a scenario "
        "holds",
    ]


def refused(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def test_the_schema_is_json_and_names_what_a_file_must_hold(greensched: Run) -> None:
    done = greensched("scenario", "schema")
    assert done.returncode == 0, done.stderr
    schema = json.loads(done.stdout, parse_constant=refused)
    assert {"name", "start", "length", "cluster", "grids", "workload"} == set(schema["required"])
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_defaults_in_the_schema_are_written_as_in_a_file(greensched: Run) -> None:
    parts = json.loads(greensched("scenario", "schema").stdout)["$defs"]
    generator, workload = parts["Generator"]["properties"], parts["ScenarioWorkload"]["properties"]
    assert generator["peak"]["default"] == "14h"
    assert generator["memory_per_core"]["default"] == ["2Gi", "4Gi", "4Gi", "8Gi"]
    assert generator["cpu_cores"]["default"] == [1.0, 2.0, 2.0, 4.0, 4.0, 8.0]
    assert workload["slack"]["default"] == "none"


def test_a_check_is_reported_as_json_too(greensched: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    done = greensched("scenario", "check", SOUND[0], missing, "-o", "json")
    assert done.returncode == 2
    sound, faulty = json.loads(done.stdout)
    assert (sound["file"], sound["isSound"], sound["nodes"]) == (SOUND[0], True, 20)
    assert (faulty["isSound"], faulty["fault"]) == (False, f"there is no file {missing}")
