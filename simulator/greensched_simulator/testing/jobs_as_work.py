"""A world's jobs as the operator reads them off the API server."""

import math
from dataclasses import replace

import numpy as np

from greensched_core import labels
from greensched_core.custom_resources.policy_lookup import PolicyOrigin
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import HoldRules
from greensched_operator.objects.green_policy import GreenPolicy, Resolved
from greensched_operator.objects.workloads import Work, WorkKind
from greensched_operator.planning.cluster_state import RunningPod, slowest_speeds
from greensched_operator.planning.pausing import JobRunSegment
from greensched_policies.planning.planning import Running
from greensched_simulator.world.world import World


def waiting_job(world: World, job: int) -> Work:
    """Return a job that waits for its start; one that can be suspended asks for pauses."""
    jobs, arrived_s = world.jobs, world.start_s + float(world.jobs.arrival_s[job])
    workers, deadline_s = float(jobs.workers[job]), float(jobs.deadline_s[job])
    annotations = {labels.RUNTIME: f"{float(jobs.estimate_s[job])}s"}
    if deadline_s < np.inf:
        annotations[labels.DEADLINE] = format_timestamp(world.start_s + deadline_s)
    if jobs.save_every_s[job] < np.inf:
        annotations[labels.CHECKPOINTABLE] = "true"
    return Work(
        kind=WorkKind.JOB,
        namespace="team",
        name=str(job),
        uid=f"job-{job}",
        created_s=arrived_s,
        annotations=annotations,
        scheduler=labels.SCHEDULER_NAME,
        cpu_cores=workers * float(jobs.cpu_cores[job]),
        memory_bytes=workers * float(jobs.memory_bytes[job]),
        gpus=workers * float(jobs.gpus[job]),
        node_selector={},
        gang="",
        owner=None,
        is_stopped=True,
        is_finished=False,
        is_leaving=False,
        pods=int(workers),
        is_ours=True,
        grace_s=float(jobs.save_s[job] / world.nodes.speed.min()),
    )


def as_running(work: Work) -> Work:
    """Return released work that runs; its progress before a pause stays written on it."""
    kept = (labels.RUNTIME, labels.DEADLINE, labels.CHECKPOINTABLE, labels.WORK_DONE,
            labels.PAUSES, labels.PAUSED_AT, labels.DECISION)  # fmt: skip
    annotations = {name: text for name, text in work.annotations.items() if name in kept}
    return replace(work, annotations=annotations, is_stopped=False, is_running=True)


def run_segment_of(work: Work, ran_s: float, zone: str, running: Running) -> JobRunSegment:
    """Return a running job of one worker as the pauser sees it."""
    pod = RunningPod(
        "", running.cpu_cores, running.until_s, gpus=running.gpus,
        memory_bytes=running.memory_bytes,
    )  # fmt: skip
    return JobRunSegment(work, ran_s, zone, (pod,))


def hold_rules(world: World, policy: GreenPolicy) -> HoldRules:
    """Return the rules of a cluster with one policy, whose jobs all take as long to start up."""
    startup_s, nodes = np.unique(world.jobs.startup_s), world.nodes
    speeds = slowest_speeds(zip(nodes.speed.tolist(), nodes.gpu_capacity.tolist(), strict=True))
    return HoldRules(
        policy_for=lambda namespace, name: Resolved(policy, PolicyOrigin.CLUSTER),
        cron_job=lambda namespace, name: None,
        default_resume_s=float(startup_s[0]) if startup_s.size == 1 else math.nan,
        slowest_speed=lambda gpus: speeds[gpus > 0.0],
    )
