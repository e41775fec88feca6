"""Every setting of the operator's processes: unit, default, reason."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from greensched_core.cluster_settings import ClusterSettings
from greensched_core.settings import OptionalPath, Port, Positive


class OperatorSettings(ClusterSettings):
    """Settings of the operator's processes; each reads those that concern it."""

    model_config = SettingsConfigDict(env_prefix="GREENSCHED_OPERATOR_")
    component: ClassVar[str] = "greensched-operator"

    namespace: str = Field(
        default="greensched",
        description="The operator's own namespace, with its Lease, its Secrets and the "
        "GreenPolicies that apply to the whole cluster.",
    )
    identity: str = Field(
        default="", description="This replica's name in the Lease; empty: the host name."
    )
    webhook_host: str = Field(default="0.0.0.0", description="Address that the API server calls.")
    webhook_port: Port = Field(
        default=9443, description="Port of that address; 0 takes a free one."
    )
    webhook_hosts: list[str] = Field(
        default=["greensched-webhook.greensched.svc"],
        min_length=1,
        description="Names or addresses by which the API server calls the webhook; its certificate "
        "is issued for them.",
    )
    webhook_secret: str = Field(
        default="greensched-webhook", description="Secret with the webhook's certificate."
    )
    webhook_configuration: str = Field(
        default="greensched",
        description="MutatingWebhookConfiguration in which the leader writes the CA to trust.",
    )
    lease: str = Field(
        default="greensched-operator", description="Lease by which the replicas elect a leader."
    )
    heartbeat_lease: str = Field(
        default="greensched-heartbeat",
        description="Lease in which the leader and the releasers write that they can start held "
        "work. If none has written for 60 seconds, the webhook holds nothing.",
    )
    budgets_config_map: str = Field(
        default="greensched-budgets",
        description="ConfigMap in which the leader keeps the use of budgets for the next one.",
    )
    lease_duration_s: Positive = Field(
        default=15.0,
        description="Seconds without a renewal by the leader after which another replica may lead; "
        "the leader renews three times as often.",
    )
    health_host: str = Field(default="0.0.0.0", description="Address of probes and metrics.")
    health_port: Port = Field(
        default=8080, description="Port of probes and metrics; 0 takes a free one."
    )
    replan_every_s: Positive = Field(
        default=300.0,
        description="Seconds after which held work is planned again even without a new "
        "forecast, if its room is gone, or if it waits for room and there is some.",
    )
    releases_per_second: Positive = Field(
        default=20.0,
        description="Most workloads that are started per second, the most urgent first.",
    )
    release_jitter_s: float = Field(
        default=120.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds over which starts planned for the same moment are spread.",
    )
    horizon_s: Positive = Field(
        default=172_800.0,
        description="Seconds ahead that are planned; day-ahead forecasts cover less.",
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
        description="Folder of the CSV and Parquet files that GridSignals may name; empty: none.",
    )
    ledger: str = Field(
        default="ledger.sqlite",
        description="Where decisions are recorded: a file on a volume of one writer, or "
        "postgresql://… for several replicas.",
    )
    ledger_keep_days: Positive = Field(
        default=400.0,
        description="Days for which records are kept: a year, and a month to look at them.",
    )
    ledger_port: Port = Field(
        default=8890,
        description="Port that serves the ledger, on loopback only: reading it takes Kubernetes' "
        "permission to port-forward. 0 takes a free one.",
    )
    measure_after_s: Positive = Field(
        default=90.0,
        description="Seconds after a workload's end at which Prometheus is asked for its energy: "
        "more than two scrapes. Without an answer it is asked again after 3 and 20 times as long.",
    )
    releaser_grace_s: float = Field(
        default=20.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds past a workload's latest start after which the releaser starts it, if "
        "the controller has not.",
    )
    kueue: bool = Field(
        default=False,
        description="Whether Kueue's Workloads that wait for our AdmissionCheck are held; the "
        "operator then reads and patches them.",
    )
    kueue_gated_by: bool = Field(
        default=False,
        description="Whether Jobs of Kueue's queues are held by kueue.x-k8s.io/admission-gated-by: "
        "for Kueue from 0.19 on, or 0.17 with its feature gate AdmissionGatedBy.",
    )
    default_policy_file: OptionalPath = Field(
        default=None,
        description="GreenPolicy in JSON that the leader creates in its namespace if none of that "
        "name exists; empty: none.",
    )
    emergency_release_timeout_s: Positive = Field(
        default=180.0,
        description="Time limit in seconds of `emergency-release`, which an uninstall runs first.",
    )
    emergency_release_owner: str = Field(
        default="",
        description="ServiceAccount that owns the emergency release's ConfigMap, which is deleted "
        "with it; empty: the ConfigMap stays.",
    )
