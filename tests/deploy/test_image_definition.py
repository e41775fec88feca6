"""What the Dockerfile and the kind scripts promise, as far as it shows without Docker."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sysconfig
import time
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from greensched_core.signals.grid import parse_grid_signal
from greensched_operator.__main__ import PROCESSES
from greensched_policies.library.sources import sources_of

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTALLER = runpy.run_path(str(ROOT / "deploy/images/install_dependencies.py"))
SCRIPTS = sorted((ROOT / "deploy" / "kind").glob("*.sh"))


def copied(text: str) -> list[str]:
    """Return what a part of the Dockerfile copies from the build context."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", text.replace("\\\n", ""), re.MULTILINE)
    return [path for line in lines for path in line.split()]


def stage(name: str) -> str:
    """Return the lines of a stage."""
    (found,) = re.findall(rf"^FROM .+ AS {name}\n((?:(?!FROM ).*\n)*)", DOCKERFILE, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("path", copied(DOCKERFILE))
def test_the_build_context_holds_what_is_copied(path: str) -> None:
    held = (ROOT / ".dockerignore").read_text().splitlines()
    assert any(f"!{each}" in held for each in (path, *Path(path).parents))
    assert (ROOT / path).exists()


@pytest.mark.parametrize("image", ["extender", "operator"])
def test_an_image_holds_its_own_layers_only(image: str) -> None:
    build = DOCKERFILE.partition(f" AS {image}-packages")[2].partition("\nFROM ")[0]
    packages = {Path(path).name for path in re.findall(r"^COPY (\S+) ", build, re.MULTILINE)}
    assert packages == {"greensched_core", "greensched_policies", f"greensched_{image}"}


def test_the_kernel_is_built_from_what_it_imports_and_not_from_other_code() -> None:
    paths = {Path(path) for path in copied(stage("kernel"))}
    files = {path.relative_to(ROOT) for path in sources_of("greensched_policies.kernel.build")}
    assert [file for file in files if not paths & {file, *file.parents}] == []
    others = ("core/greensched_core", "policies/greensched_policies/planning")
    assert not paths & {Path(other) for other in (*others, *map(os.path.dirname, others))}


@pytest.mark.parametrize("image", ["extender", "operator"])
def test_an_image_without_its_kernel_is_never_made(image: str) -> None:
    assert f"FROM kernel AS {image}-packages\n" in DOCKERFILE
    check = 'python -m greensched_policies.library.loading "$TARGETARCH"'
    assert check in stage(f"{image}-packages").partition("compileall")[2]


@pytest.mark.parametrize("image", ["extender", "operator"])
def test_an_image_runs_its_own_program(image: str) -> None:
    target = DOCKERFILE.partition(f"FROM runtime AS {image}\n")[2].partition("\nFROM ")[0]
    assert f"COPY --from={image}-dependencies /opt/greensched /opt/greensched" in target
    assert f"COPY --from={image}-packages /opt/greensched /opt/greensched" in target
    assert f'ENTRYPOINT ["python", "-m", "greensched_{image}"]' in target


def test_every_process_of_the_operator_is_named_where_it_is_chosen() -> None:
    (named,) = re.findall(r"^# Which process is an argument: (.*)\.$", DOCKERFILE, re.MULTILINE)
    assert named.split(", ") == list(PROCESSES)


def test_an_image_runs_as_nobody_and_phones_nobody() -> None:
    runtime = DOCKERFILE.partition(" AS runtime")[2].partition("\nFROM ")[0]
    assert "USER 65532:65532" in runtime
    assert "ORT_DISABLE_TELEMETRY=1" in runtime
    assert "USER" not in DOCKERFILE.partition("FROM runtime AS extender")[2]


@pytest.mark.parametrize(
    ("layer", "pinned"),
    [
        ("extender-dependencies", "extender"),
        ("operator-dependencies", "operator"),
        ("kernel-compiler", "kernel"),
    ],
)
def test_dependencies_are_installed_by_hash(layer: str, pinned: str) -> None:
    assert f"requirements/{pinned}.txt" in stage(layer)
    assert "--hash=sha256:" in (ROOT / "requirements" / f"{pinned}.txt").read_text()


def test_nothing_of_an_image_is_run_while_it_is_made() -> None:
    """So that an image for another processor needs no emulation."""
    runs_here = set[str]()
    for stage in DOCKERFILE.split("\nFROM ")[1:]:
        base, name = re.findall(r"^(.+) AS (\S+)$", stage, re.MULTILINE)[0]
        if base.startswith("--platform=$BUILDPLATFORM ") or base in runs_here:
            runs_here.add(name)
        else:
            assert "\nRUN " not in stage, name
    assert "kernel" in runs_here


def test_the_base_is_named_by_its_digest() -> None:
    assert re.search(r"^ARG PYTHON_IMAGE=\S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)


@pytest.mark.parametrize(
    ("target_arch", "machine", "wheels"),
    [
        pytest.param("", "x86_64", None, id="a-builder-that-names-none"),
        pytest.param("amd64", "x86_64", None, id="its-own"),
        pytest.param("arm64", "aarch64", None, id="its-own-arm"),
        pytest.param("arm64", "x86_64", "aarch64", id="another"),
        pytest.param("amd64", "aarch64", "x86_64", id="the-other-way"),
    ],
)
def test_wheels_are_chosen_for_the_processor_of_the_image(
    target_arch: str, machine: str, wheels: str | None
) -> None:
    options = INSTALLER["platform_options"](target_arch, machine)
    if wheels is None:
        assert options == []
    else:
        assert f"manylinux_2_28_{wheels}" in options
        assert f"manylinux2014_{wheels}" in options


def test_an_unknown_processor_is_refused_by_name() -> None:
    with pytest.raises(SystemExit, match="TARGETARCH=s390x is unknown: use one of amd64, arm64"):
        INSTALLER["platform_options"]("s390x", "x86_64")


def test_what_is_left_out_of_images_is_there_to_be_left_out() -> None:
    packages = Path(sysconfig.get_path("purelib"))
    absent = [
        pattern for pattern in INSTALLER["LEFT_OUT"] if not next(packages.glob(pattern), None)
    ]
    assert absent == ["bin"], "only pip's --target makes it"


def test_leaving_out_keeps_the_rest(tmp_path: Path) -> None:
    for path in ("numpy/f2py/a.py", "numpy/tests/b.py", "numpy/c.py", "numpy/c.pyi"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    INSTALLER["leave_out"](tmp_path)
    assert [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.*")] == ["numpy/c.py"]


def test_the_operator_knows_time_zones_where_the_system_does_not() -> None:
    pinned = (ROOT / "requirements" / "operator.txt").read_text().splitlines()
    assert any(re.fullmatch(r"tzdata==\S+ \\", line) for line in pinned), "on every platform"


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_pass_shellcheck(script: Path) -> None:
    result = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_the_kind_cluster_has_workers_in_two_grid_zones() -> None:
    cluster = yaml.safe_load((ROOT / "deploy" / "kind" / "cluster.yaml").read_text())
    workers = [node["labels"] for node in cluster["nodes"] if node["role"] == "worker"]
    zones = {labels["greensched.io/grid-zone"] for labels in workers}
    signals = yaml.safe_load_all((ROOT / "deploy" / "kind" / "gridsignals.yaml").read_text())
    assert len(workers) >= 3
    assert zones == {signal["spec"]["zone"] for signal in signals}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_keep_no_file_where_others_may_write(script: Path) -> None:
    text = script.read_text()
    assert not re.search(r"^[^#]*(/tmp|TMPDIR)", text, re.MULTILINE)
    assert "KUBECONFIG" not in text or "build/kind/kubeconfig" in text


@pytest.mark.parametrize(
    ("later", "grams"),
    [
        pytest.param((), 24.0, id="as-now-unless-said"),
        pytest.param(("5", "9"), 5.0, id="cleaner"),
    ],
)
def test_a_signal_that_is_published_has_a_forecast(
    tmp_path: Path, later: tuple[str, ...], grams: float
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\nfor last; do :; done\nprintf "%s" "$last"\n')
    kubectl.chmod(0o755)
    script = ROOT / "deploy" / "kind" / "publish-signal.sh"
    path = f"{tmp_path}:{os.environ['PATH']}"
    told = subprocess.run(
        [script, "se-se3", "24", "41", *later],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    now_s, written = time.time(), {"spec": {"zone": "SE-SE3"}, **yaml.safe_load(told)}
    forecast, faults = parse_grid_signal(json.dumps(written, default=datetime.isoformat), now_s)
    assert faults == ()
    assert forecast is not None
    assert [slot.carbon_g_per_kwh for slot in forecast.forecast] == [grams]
    assert forecast.forecast_end is not None and forecast.forecast_end - now_s > 6 * 3600


def test_the_kind_clusters_held_job_opts_in_and_may_wait() -> None:
    job = yaml.safe_load((ROOT / "deploy" / "kind" / "held-job.yaml").read_text())
    assert job["spec"]["template"]["spec"]["schedulerName"] == "greensched"
    assert job["metadata"]["annotations"]["greensched.io/deadline"] == "6h"


def test_what_up_takes_from_the_environment_is_documented() -> None:
    script = (ROOT / "deploy" / "kind" / "up.sh").read_text()
    inputs = set(re.findall(r"GREENSCHED_[A-Z]+_IMAGE", script))
    assert len(inputs) == 3
    assert inputs <= set(re.findall(r"\w+", (ROOT / "docs" / "install.md").read_text()))


@pytest.mark.parametrize(
    ("image", "told"),
    [
        pytest.param("foo:1", "docker is missing", id="tag"),
        pytest.param("localhost:5000/foo:1", "docker is missing", id="port-and-tag"),
        pytest.param("foo", "foo has no tag", id="neither"),
        pytest.param("foo:", "foo: has no tag", id="empty-tag"),
        pytest.param("localhost:5000/foo", "localhost:5000/foo has no tag", id="port-is-no-tag"),
        pytest.param("foo@sha256:aa", "foo@sha256:aa has no tag", id="digest"),
        pytest.param("foo:1@sha256:aa", "foo:1@sha256:aa has no tag, or a digest", id="both"),
    ],
)
def test_up_takes_images_by_their_tags_alone(tmp_path: Path, image: str, told: str) -> None:
    for program in ("bash", "dirname"):  # no Docker: nothing is begun
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    script = ROOT / "deploy" / "kind" / "up.sh"
    environment = {"PATH": str(tmp_path), "GREENSCHED_OPERATOR_IMAGE": image}
    ended = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, told in ended.stderr) == (1, True), ended.stderr


def test_pods_are_there_before_they_are_waited_for() -> None:
    script = (ROOT / "deploy" / "kind" / "up.sh").read_text()
    assert script.index("get pods --selector job-name=first --output name") < script.index(
        "kubectl wait pod"
    )
