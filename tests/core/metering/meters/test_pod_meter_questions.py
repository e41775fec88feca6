"""What meters of pods are asked for, against the pages of their exporters."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from greensched_core.metering.meters import kepler, kubelet, old_kepler, scaphandre
from greensched_core.metering.pod_runs import PodRun

GOLDEN = Path(__file__).parents[3] / "golden"
RUN = PodRun("0f3c9a52-7d1e-4b1c-9c44-2a8f6f1f0c11", "team", "train-x7k2p", 0.0, 600.0, None)
PODS_CPU, CONTAINERS_CPU = kubelet.pod_questions([RUN], 5.0)


def test_a_point_in_a_name_is_no_wildcard() -> None:
    asked = scaphandre.question([replace(RUN, name="a.b"), replace(RUN, name="c")])
    assert 'kubernetes_pod_name=~"a[.]b|c"' in asked


@pytest.mark.parametrize(
    ("page", "metric", "asked"),
    [
        ("pods-kepler", "kepler_pod_cpu_joules_total", kepler.question([RUN], 5.0)),
        ("pods-kepler-0.9", "kepler_container_joules_total", old_kepler.question([RUN], 5.0)),
        (
            "pods-scaphandre",
            "scaph_process_power_consumption_microwatts",
            scaphandre.question([RUN]),
        ),
        ("metrics-resource", "pod_cpu_usage_seconds_total", PODS_CPU),
        ("metrics-resource", "container_cpu_usage_seconds_total", CONTAINERS_CPU),
    ],
)
def test_an_exporter_has_the_labels_that_it_is_asked_by(page: str, metric: str, asked: str) -> None:
    (stored,) = GOLDEN.glob(f"*/{page}.prom")
    families = text_string_to_metric_families(stored.read_text())
    series = [s.labels for family in families for s in family.samples if s.name == metric]
    assert re.search(rf"\b{metric}\b", asked)
    wanted = re.findall(r'(\w+)((?<!!)=~?)"([^"]*)"', asked)
    assert any(
        all(
            re.fullmatch(value, labels[name]) if sign == "=~" else labels[name] == value
            for name, sign, value in wanted
        )
        for labels in series
    )
    (by,) = re.findall(r"by \(([^)]*)\)", asked)
    assert set(by.split(", ")) - {"id"} <= series[0].keys(), "an id is cadvisor's"
