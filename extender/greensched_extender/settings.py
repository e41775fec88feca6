"""Every setting of the extender: unit, default, reason."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import SettingsConfigDict

from greensched_core.kubernetes_api import SERVICE_ACCOUNT_DIR
from greensched_core.settings import ComponentSettings

MIB = 2**20


def _none_if_empty(value: object) -> object:
    return None if value == "" else value


# A chart can only leave a variable empty, not absent.
OptionalPath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
Port = Annotated[int, Field(ge=0, le=65_535)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
CURRENCY = "^[A-Z]{3}$"


class ExtenderSettings(ComponentSettings):
    """How the extender listens, what it prefers and what it assumes where nothing is measured."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_EXTENDER_")

    listen_host: str = Field(default="0.0.0.0", description="Address that kube-scheduler calls.")
    listen_port: Port = Field(default=8888, description="Port of that address; 0 takes a free one.")
    explain_port: Port = Field(
        default=8889,
        description="Port of the explain routes, on loopback only, so that Kubernetes' permission "
        "to port-forward guards them; 0 takes a free one.",
    )
    tls_cert_file: OptionalPath = Field(
        default=None,
        description="Certificate chain (PEM), read again when it changes; empty: plain HTTP.",
    )
    tls_key_file: OptionalPath = Field(
        default=None, description="Private key (PEM) of that certificate."
    )
    tls_client_ca_file: OptionalPath = Field(
        default=None,
        description="Authorities (PEM) that a caller's certificate must come from; empty: anyone "
        "may call. Probes and Prometheus then need a certificate too.",
    )
    kubeconfig: OptionalPath = Field(
        default=None, description="Kubeconfig of the API server; empty: in the cluster."
    )
    serviceaccount_dir: Path = Field(
        default=SERVICE_ACCOUNT_DIR, description="Folder of token and ca.crt when in the cluster."
    )
    scheduler_names: list[str] = Field(
        default=["greensched"],
        min_length=1,
        description="spec.schedulerName of the pods that opt in; all others pass untouched.",
    )
    policy: str = Field(
        default="onnx",
        description="onnx for the bundle's model, or a rule's name such as least-carbon.",
    )
    bundle: OptionalPath = Field(
        default=None,
        description="Folder of the policy bundle, taken up anew when its card changes; empty: the "
        "one in the package.",
    )
    fallback_policy: str = Field(
        default="weighted-cost",
        description="Rule that answers when the model is late, broken or absent.",
    )
    weight_energy: Weight = Field(default=1.0, description="Weight of money in the policy.")
    weight_carbon: Weight = Field(default=1.0, description="Weight of carbon in the policy.")
    weight_performance: Weight = Field(default=0.1, description="Weight of runtime in the policy.")
    model_budget_ms: Positive = Field(
        default=20.0,
        description="Milliseconds the model may take for one decision, far below kube-scheduler's "
        "200 ms for the call.",
    )
    provisional_ttl_s: Positive = Field(
        default=10.0,
        description="Seconds a pod counts on its top-scored node until the watch shows it bound.",
    )
    utilisation_ratio: Share = Field(
        default=0.5,
        description="CPU used per CPU requested, where nothing is measured. Clusters use about "
        "half of what is requested.",
    )
    gpu_ratio: Share = Field(
        default=0.6,
        description="Share of a GPU board's range from idle to peak watts that a pod draws.",
    )
    default_runtime_s: Positive = Field(
        default=3600.0,
        description="Seconds that pods without greensched.io/runtime are expected to run.",
    )
    pue: float = Field(
        default=1.2,
        ge=1.0,
        le=5.0,
        description="Power usage effectiveness of nodes without the label greensched.io/pue.",
    )
    empty_nodes_sleep: bool = Field(
        default=False,
        description="Empty nodes sleep or are removed, so that idle watts count as well.",
    )
    prometheus_url: str = Field(
        default="",
        pattern=r"^(https?://\S+)?$",
        description="Prometheus that knows the watts of nodes; empty: requests times the ratio.",
    )
    prometheus_interval_s: Positive = Field(
        default=15.0,
        description="Seconds between two questions to Prometheus; scrapes are as far apart.",
    )
    prometheus_timeout_s: Positive = Field(
        default=5.0, description="Seconds that one question may take."
    )
    static_zones_file: OptionalPath = Field(
        default=None,
        description="TOML table of carbon and price by zone, the last step of the fallback; empty: "
        "the shipped one.",
    )
    currency: str = Field(
        default="EUR", pattern=CURRENCY, description="Currency of all prices and costs (ISO 4217)."
    )
    exchange_rates: dict[str, Positive] = Field(
        default={},
        description="Worth of one unit of each other currency in that one, such as USD: 0.92; "
        "prices in a currency without a rate are no data.",
    )
    signal_fresh_s: Positive = Field(
        default=5400.0,
        description="Seconds since its source was read for which a GridSignal counts as fresh; "
        "sources publish hourly.",
    )
    signal_last_good_s: Positive = Field(
        default=86_400.0,
        description="Seconds for which the last good values serve when nothing newer comes; then "
        "the static table does.",
    )
    zone_map: dict[str, str] = Field(
        default={},
        description="Grid zone by topology.kubernetes.io/zone or /region, for nodes without the "
        "label greensched.io/grid-zone.",
    )
    filter_enabled: bool = Field(
        default=False, description="Refuse nodes whose power budget the pod would exceed."
    )
    bind_enabled: bool = Field(default=False, description="Answer /bind by creating the Binding.")
    max_body_bytes: int = Field(
        default=32 * MIB,
        ge=1024,
        description="Bytes of the largest request that is read; 100,000 names are about 4 MB.",
    )
    snapshot_max_age_s: Positive = Field(
        default=120.0,
        description="Seconds without a live watch after which answers abstain: 0 for every node.",
    )
    decisions_max_bytes: int = Field(
        default=32 * MIB,
        ge=0,
        description="Bytes of memory for past decisions, the oldest go first.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file are set together or not at all")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        if self.listen_port == self.explain_port != 0:
            raise ValueError(
                f"listen_port and explain_port are both {self.listen_port}: they must differ"
            )
        wrong = [code for code in self.exchange_rates if not re.match(CURRENCY, code)]
        if wrong:
            raise ValueError(f"exchange_rates: {wrong[0]!r} is no currency such as USD")
        if self.signal_last_good_s < self.signal_fresh_s:
            raise ValueError("signal_last_good_s is shorter than signal_fresh_s")
        return self
