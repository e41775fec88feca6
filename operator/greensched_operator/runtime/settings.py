"""Every setting of the operator's processes: unit, default, reason."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from greensched_core.cluster_settings import ClusterSettings
from greensched_core.settings import OptionalPath, Port, Positive


class OperatorSettings(ClusterSettings):
    """What the operator's processes go by; each reads the settings that concern it."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_OPERATOR_")
    component: ClassVar[str] = "greensched-operator"

    namespace: str = Field(
        default="greensched",
        description="The operator's own namespace: of its Lease, its Secrets, and of the "
        "GreenPolicies that hold for the whole cluster.",
    )
    identity: str = Field(
        default="", description="This replica's name in the Lease; empty: the host's name."
    )
    webhook_host: str = Field(default="0.0.0.0", description="Address that the API server calls.")
    webhook_port: Port = Field(
        default=9443, description="Port of that address; 0 takes a free one."
    )
    webhook_hosts: list[str] = Field(
        default=["greensched-webhook.greensched.svc"],
        min_length=1,
        description="Names, or addresses, by which the API server calls the webhook: what its "
        "certificate is made out to.",
    )
    webhook_secret: str = Field(
        default="greensched-webhook", description="Secret of the webhook's certificate."
    )
    webhook_configuration: str = Field(
        default="greensched",
        description="MutatingWebhookConfiguration that is told which certificate to trust.",
    )
    lease: str = Field(
        default="greensched-operator", description="Lease by which the replicas elect a leader."
    )
    heartbeat_lease: str = Field(
        default="greensched-heartbeat",
        description="Lease by which the leader and the releasers tell that they can start what is "
        "held: without a word of one of them within 60 seconds, the webhook holds nothing.",
    )
    lease_duration_s: Positive = Field(
        default=15.0,
        description="Seconds without a word from the leader after which another may lead; it "
        "writes three times as often.",
    )
    health_host: str = Field(default="0.0.0.0", description="Address of probes and metrics.")
    health_port: Port = Field(
        default=8080, description="Port of probes and metrics; 0 takes a free one."
    )
    replan_every_s: Positive = Field(
        default=300.0,
        description="Seconds after which all is planned again without a new forecast: the hour "
        "moves on, and the cluster changes.",
    )
    releases_per_second: Positive = Field(
        default=20.0,
        description="Workloads that are started per second at most, the most urgent first.",
    )
    release_jitter_s: float = Field(
        default=120.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds over which starts planned for one moment are spread.",
    )
    horizon_s: Positive = Field(
        default=172_800.0,
        description="Seconds ahead that are planned; day-ahead forecasts know less.",
    )
    resume_s: float = Field(
        default=60.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds that a Job without a JobPowerProfile takes to start up again after a "
        "pause.",
    )
    signal_files: OptionalPath = Field(
        default=None,
        description="Folder of CSV and Parquet files that GridSignals may name; empty: none.",
    )
    ledger: str = Field(
        default="ledger.sqlite",
        description="Where decisions are recorded: a file on a volume of one writer, or "
        "postgresql://… for several replicas.",
    )
    ledger_keep_days: Positive = Field(
        default=400.0, description="Days for which records are kept: a year, and a month to look."
    )
    ledger_port: Port = Field(
        default=8890,
        description="Port that serves the ledger, on loopback only, so that Kubernetes' permission "
        "to port-forward guards it; 0 takes a free one.",
    )
    measure_after_s: Positive = Field(
        default=90.0,
        description="Seconds after a workload's end at which Prometheus is asked what it took: "
        "more than two scrapes. What it does not know yet is asked again after 3 and 20 times as "
        "long.",
    )
    releaser_grace_s: float = Field(
        default=20.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds past its latest start after which the releaser frees what the "
        "operator has not.",
    )
    kueue: bool = Field(
        default=False,
        description="Whether Workloads of Kueue that wait for our AdmissionCheck are held; the "
        "operator then reads and patches them.",
    )
    kueue_gated_by: bool = Field(
        default=False,
        description="Whether Jobs of Kueue's queues are held by kueue.x-k8s.io/admission-gated-by: "
        "for Kueue from 0.19 on, or 0.17 with its feature gate AdmissionGatedBy.",
    )
    default_policy_file: OptionalPath = Field(
        default=None,
        description="GreenPolicy in JSON that the leader creates in its namespace where there is "
        "none of that name; empty: none.",
    )
    emergency_release_timeout_s: Positive = Field(
        default=180.0,
        description="Seconds that `emergency-release`, which an uninstall runs first, takes at "
        "most.",
    )
    emergency_release_owner: str = Field(
        default="",
        description="ServiceAccount with which the ConfigMap of the emergency release is deleted; "
        "empty: it stays.",
    )
