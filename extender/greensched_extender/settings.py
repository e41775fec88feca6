"""Every setting of the extender: unit, default, reason."""

from ipaddress import ip_address
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from greensched_core.cluster_settings import ClusterSettings
from greensched_core.settings import OptionalPath, Port, Positive
from greensched_policies.learned.model_fields import ONNX

MIB = 2**20
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ExtenderSettings(ClusterSettings):
    """How the extender listens, what it prefers and what it assumes where nothing is measured."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_EXTENDER_")
    component: ClassVar[str] = "greensched-extender"

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
    policy: str = Field(
        default=ONNX,
        description="onnx for the bundle's model, or a rule's name such as least-carbon.",
    )
    bundle: OptionalPath = Field(
        default=None,
        description="Folder of the policy bundle, loaded again when its card changes; empty: the "
        "bundle in the package.",
    )
    fallback_policy: str = Field(
        default="weighted-cost",
        description="Rule that scores when the model is late, broken or absent.",
    )
    weight_cost: Weight = Field(
        default=1.0,
        description="Weight of money, for pods that follow no GreenPolicy; a GreenPolicy has its "
        "own weights.",
    )
    weight_carbon: Weight = Field(default=1.0, description="Weight of carbon, for the same pods.")
    weight_performance: Weight = Field(
        default=0.1, description="Weight of runtime, for the same pods."
    )
    policy_namespace: str = Field(
        default="greensched",
        description="The operator's namespace: its GreenPolicies apply to the whole cluster.",
    )
    model_budget_ms: Positive = Field(
        default=20.0,
        description="Milliseconds the model may take for one decision, far below kube-scheduler's "
        "200 ms for the call.",
    )
    provisional_ttl_s: Positive = Field(
        default=10.0,
        description="Seconds a pod counts on its top-scored node until the watch shows it bound.",
    )
    default_runtime_s: Positive = Field(
        default=3600.0,
        description="Seconds that pods without greensched.io/runtime are expected to run.",
    )
    empty_nodes_sleep: bool = Field(
        default=False,
        description="Whether empty nodes sleep or are removed. The first pod on such a node then "
        "pays its idle watts as well.",
    )
    prometheus_interval_s: Positive = Field(
        default=15.0,
        description="Seconds between two queries to Prometheus; use the scrape interval.",
    )
    filter_enabled: bool = Field(
        default=False,
        description="Refuse nodes whose power budget the pod would exceed. Needs "
        "tls_client_ca_file, or a loopback listen_host; otherwise anyone could fill the budgets.",
    )
    bind_enabled: bool = Field(default=False, description="Answer /bind by creating the Binding.")
    max_body_bytes: int = Field(
        default=32 * MIB,
        ge=1024,
        description="Largest request that is read, in bytes. One with 100,000 names of nodes has "
        "about 4 MB.",
    )
    snapshot_max_age_s: Positive = Field(
        default=120.0,
        description="Seconds without a live watch after which every node gets 0, so that the "
        "scheduler's own scores decide.",
    )
    decisions_max_bytes: int = Field(
        default=32 * MIB,
        ge=0,
        description="Bytes of memory for past decisions; the oldest are dropped first.",
    )

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file are set together or not at all")
        if self.tls_client_ca_file is not None and self.tls_cert_file is None:
            raise ValueError("tls_client_ca_file needs tls_cert_file and tls_key_file")
        if self.filter_enabled and not (self.tls_client_ca_file or _is_loopback(self.listen_host)):
            raise ValueError(
                "filter_enabled needs tls_client_ca_file, or a listen_host that only this machine "
                "reaches: otherwise anyone could fill power budgets with pods that do not exist"
            )
        if self.listen_port == self.explain_port != 0:
            raise ValueError(
                f"listen_port and explain_port are both {self.listen_port}: they must differ"
            )
        return self
