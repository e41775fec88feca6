"""What the engine needs of a world and a policy, but for what a run changes."""

import numpy as np

from greensched_operator.objects.green_policy import BUILT_IN
from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.costs.scaling import NO_SCALING
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.rules.catalogue import BLIND_TO_ROOM, MAY_REJECT, SCALE_RULES
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.engine.run import DISCIPLINES
from greensched_simulator.engine.state.autoscaler import SCAN_INTERVAL_S
from greensched_simulator.engine.state.choices import nodes_to_score
from greensched_simulator.engine.state.job_estimates import JobEstimates, estimates_of
from greensched_simulator.engine.state.power_states import WAKE_S
from greensched_simulator.engine.state.terms import RunConfig
from greensched_simulator.policy import LEARNED, QUEUES, USUAL_CAP, Policy
from greensched_simulator.runs.busy_nodes import run_watts
from greensched_simulator.runs.hold_terms import green_policy_of
from greensched_simulator.runs.looking_ahead import green_policy_pauses, may_suspend
from greensched_simulator.world.world import World


def estimates_in(world: World, sleep: Floats) -> JobEstimates:
    """Return the job estimates of a world whose nodes sleep by the table `sleep`."""
    wake_s = sleep[WAKE_S] if sleep.shape[1] else np.zeros(world.nodes.zone.size)
    if world.autoscaled.group.size:
        start_s = SCAN_INTERVAL_S + world.autoscaled.wake_s
        wake_s = np.where(world.autoscaled.group >= 0, start_s, wake_s)
    zones = len(world.zones)
    found = estimates_of(world.jobs, world.precedence, world.nodes, zones, wake_s, world.links)
    none_can = np.isinf(found.runtime_s)
    run_j = np.where(none_can, np.inf, run_watts(world) * np.where(none_can, 0.0, found.runtime_s))
    return found._replace(run_j=run_j)


def planned_jobs(world: World, estimates: JobEstimates) -> JobArrays:
    """Return a world's jobs with deadlines early enough for the jobs that wait for them."""
    return world.jobs._replace(deadline_s=estimates.latest_end_s)


def steps_watched(world: World, policy: Policy) -> Floats:
    """Return the times at which any grid changes; none if no rule of the policy reads them."""
    is_provisioned = QUEUES[policy.queue].discipline == "provisioned"
    if policy.cap == USUAL_CAP and not is_provisioned:
        return np.zeros(0)
    return grid_steps(world)


def grid_steps(world: World) -> Floats:
    """Return the times at which any grid changes, in order."""
    steps_s: Floats = np.unique(world.grids.times_s)
    return steps_s


def cost_model(world: World) -> CostModel:
    """Return the assumptions on power that cost and bill share."""
    return CostModel(
        world.curve_watts, world.utilisation_ratio, world.gpu_ratio, world.empty_nodes_sleep
    )


def run_config_of(world: World, policy: Policy) -> RunConfig:
    """Return the constants of a policy's run."""
    placing, green = policy.placing, green_policy_of(world, policy)
    judged = green or BUILT_IN
    return RunConfig(
        discipline=DISCIPLINES.index(QUEUES[policy.queue].discipline),
        slot_s=SLOT_S,
        nodes_to_score=1 if placing.stops_at_first else nodes_to_score(world.nodes.zone.size),
        weights=(green or world).weights,
        model=cost_model(world),
        sees_room=policy.where == LEARNED or placing.rule not in BLIND_TO_ROOM,
        goes_on=placing.goes_on,
        may_reject=policy.when in MAY_REJECT,
        may_suspend=may_suspend(world, policy),
        caps_package_power=world.caps_package_power,
        scaling=world.scaling if policy.pause in SCALE_RULES else NO_SCALING,
        links=world.links,
        may_hold=policy.is_held,
        may_pause=green_policy_pauses(world, policy),
        begin_s=world.start_s,
        runtime_error=judged.runtime_error,
        on_time_target=judged.on_time_target,
        mean_memory=float(world.nodes.memory_capacity.mean()),
    )
