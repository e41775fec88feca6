"""Which image each pod of the chart runs: by digest, by a stated tag, by the chart's version."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.helm

Render = Callable[..., list[dict[str, Any]]]
Refusal = Callable[..., str]
Run = Callable[..., subprocess.CompletedProcess[str]]

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
DIGEST = "sha256:" + "0123456789abcdef" * 4
PARTS = ["extender", "operator", "scheduler"]


def images(objects: list[dict[str, Any]]) -> dict[str, str]:
    """Return the image of each pod, by the name of its Deployment or Job."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"]
        for each in objects
        if each["kind"] in ("Deployment", "Job")
    }


def test_ours_follow_the_charts_version(render: Render) -> None:
    ours = {image for image in images(render()).values() if "kube-scheduler" not in image}
    assert ours == {f"localhost/greensched-{part}:{VERSION}" for part in ("extender", "operator")}


@pytest.mark.parametrize("part", PARTS)
def test_a_digest_wins_over_the_tag(render: Render, part: str) -> None:
    objects = render("--set", f"{part}.image.digest={DIGEST},{part}.image.tag=v9")
    by_digest = {image for image in images(objects).values() if image.endswith(f"@{DIGEST}")}
    assert len(by_digest) == 1
    assert ":v9" not in str(images(objects))


def test_every_process_of_the_operator_runs_the_same_image(render: Render) -> None:
    found = images(render("--set", f"operator.image.digest={DIGEST}"))
    operators = ("controller", "webhook", "releaser", "emergency-release")
    assert {found[f"greensched-{name}"] for name in operators} == {
        f"localhost/greensched-operator@{DIGEST}"
    }


@pytest.mark.parametrize(
    "wrong", ["0123456789abcdef", "sha256:0123", DIGEST.upper(), f"{DIGEST}0", f"tag@{DIGEST}"]
)
def test_what_is_no_digest_is_refused_by_name(refusal: Refusal, wrong: str) -> None:
    assert "/extender/image/digest" in refusal("--set", f"extender.image.digest={wrong}")


def test_what_helm_test_tries_runs_the_operators_image(helm_offline: Run) -> None:
    digest = f"operator.image.digest={DIGEST}"
    ran = helm_offline("template", "greensched", "CHART", "--set", digest)
    (pod,) = (each for each in yaml.safe_load_all(ran.stdout) if each and each["kind"] == "Pod")
    (container,) = pod["spec"]["containers"]
    told = {each["name"]: each.get("value") for each in container["env"]}
    image = f"localhost/greensched-operator@{DIGEST}"
    assert (container["image"], told["GREENSCHED_CHECK_IMAGE"]) == (image, image)
