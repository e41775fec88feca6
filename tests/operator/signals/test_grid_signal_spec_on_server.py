"""GridSignals on the real API server: what is refused, with which sentence, and what is shown."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

Kubectl = Callable[..., CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[3]
TOKEN = {"name": "s"}
JSON = {"url": "https://example.test/x?a=b", "start": "s", "value": "v"}
TARIFF = {"timeZone": "Europe/Berlin", "pricePerMwh": 300}


@pytest.fixture
def zz(kubectl: Kubectl, crds: None) -> Iterator[Callable[..., str]]:
    """Return a function that applies GridSignal zz with a spec and returns the complaint."""

    def apply(**spec: Any) -> str:
        signal = {
            "apiVersion": "greensched.io/v1alpha1",
            "kind": "GridSignal",
            "metadata": {"name": "zz"},
            "spec": {"zone": "ZZ", **spec},
        }
        return kubectl("apply", "-f", "-", stdin=json.dumps(signal)).stderr

    yield apply
    kubectl("delete", "gridsignal", "zz", "--ignore-not-found")


def period(start: str, end: str, **more: Any) -> dict[str, Any]:
    return {
        "tariff": {**TARIFF, "periods": [{"start": start, "end": end, "pricePerMwh": 1, **more}]}
    }


@pytest.mark.parametrize(
    ("kind", "entry", "words"),
    [
        pytest.param("carbon", {}, "exactly one provider in each entry of carbon", id="none"),
        pytest.param(
            "carbon", {"static": {}, "ukCarbonIntensity": {}}, "exactly one provider", id="two"
        ),
        pytest.param("price", {"wattTime": {}}, 'unknown field "spec.price[0].wattTime"',
                     id="carbon-for-a-price"),
        pytest.param("carbon", {"electricityMaps": {"zone": "DE"}}, "secretRef", id="no-secret"),
        pytest.param("carbon", {"electricityMaps": {"zone": "DE", "secretRef": {"name": "S_"}}},
                     "name of a Secret", id="secret-name"),
        pytest.param("carbon", {"ukCarbonIntensity": {"regionId": 18}}, "regionId", id="region"),
        pytest.param("price", {"entsoe": {"domain": "DE", "secretRef": TOKEN}}, "EIC code",
                     id="no-eic"),
        pytest.param("price", {"nordPool": {"area": "SE3,FI"}}, "one delivery area", id="areas"),
        pytest.param("price", {"tariff": {**TARIFF, "timeZone": "../x"}}, "IANA", id="time-zone"),
        pytest.param("price", period("6:00", "22:00"), "in quotes", id="one-digit"),
        pytest.param("price", period("06:10", "22:00"), "quarter of an hour", id="ten-past"),
        pytest.param("price", period("06:00", "06:00"), "must differ", id="empty-period"),
        pytest.param("price", period("06:00", "24:00", days=["Monday"]), "days", id="day"),
        pytest.param("price", {"file": {"path": "../x.csv", "valueColumn": "v"}}, "leading",
                     id="path-leads-out"),
        pytest.param("price", {"file": {"path": "x.xls", "valueColumn": "v"}}, ".parquet",
                     id="no-csv"),
        pytest.param("price", {"jsonEndpoint": {**JSON, "url": "https://me:pw@x/"}}, "secretRef",
                     id="password-in-url"),
        pytest.param("price", {"jsonEndpoint": {**JSON, "url": "file:///etc/passwd"}}, "http://",
                     id="no-http"),
        pytest.param("price", {"jsonEndpoint": {**JSON, "end": "e", "slotSeconds": 60}}, "not both",
                     id="end-and-seconds"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_refused_with_a_sentence_that_helps(
    zz: Callable[..., str], kind: str, entry: dict[str, Any], words: str
) -> None:
    assert words in zz(**{kind: [entry]})


@pytest.mark.parametrize("interval", ["30s", "25h", "quarter", "-5m", "1.5h"])
def test_a_wrong_poll_interval_is_refused(zz: Callable[..., str], interval: str) -> None:
    assert "pollInterval must be a duration from 1m to 24h" in zz(pollInterval=interval)


def test_every_provider_at_once_is_taken_and_defaults_are_filled_in(
    zz: Callable[..., str], kubectl: Kubectl
) -> None:
    complaint = zz(
        pollInterval="1h30m",
        carbon=[
            {"electricityMaps": {"zone": "DE", "secretRef": TOKEN}},
            {"wattTime": {"region": "CAISO_NORTH", "secretRef": TOKEN}},
            {"ukCarbonIntensity": {}},
            {"jsonEndpoint": JSON},
            {"file": {"path": "a/b.csv", "valueColumn": "v"}},
            {"static": {}},
        ],
        price=[
            {"entsoe": {"domain": "10Y1001A1001A82H", "secretRef": TOKEN}},
            {"nordPool": {"area": "SE3"}},
            {"caisoOasis": {"node": "TH_NP15_GEN-APND"}},
            period("22:00", "06:00"),
            {"jsonEndpoint": {**JSON, "secretRef": {"name": "s", "key": "k"}}},
            {"file": {"path": "b.parquet", "valueColumn": "v"}},
            {"static": {"zone": "SE"}},
        ],
    )
    assert complaint == ""
    stored = json.loads(kubectl("get", "gridsignal", "zz", "-o", "json").stdout)["spec"]
    maps = stored["carbon"][0]["electricityMaps"]
    assert maps["secretRef"] == {"name": "s", "key": "token"}
    assert maps["emissionFactorType"] == "lifecycle"
    assert stored["carbon"][1]["wattTime"]["secretRef"]["passwordKey"] == "password"


@pytest.mark.usefixtures("crds")
def test_the_examples_and_those_of_the_page_are_taken(kubectl: Kubectl) -> None:
    page = (ROOT / "docs" / "signals.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in page.split("```yaml\n")[1:]]
    shown = [block for block in blocks if "kind: GridSignal" in block]
    files = sorted((ROOT / "examples").glob("*grid-signal*.yaml"))
    assert len(shown) >= 5
    assert len(files) >= 3
    for text in [*shown, *(path.read_text(encoding="utf-8") for path in files)]:
        assert list(yaml.safe_load_all(text))
        taken = kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
        assert taken.returncode == 0, taken.stderr
