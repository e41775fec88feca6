"""How many nodes an elastic job should have in each slot until its deadline."""

import numpy as np

from greensched_policies.costs.cost import Floats


def carbon_scaler(
    carbon_g_per_kwh: Floats, work_per_slot: Floats, power_w: Floats, work: Floats
) -> Floats:
    """Return the share of each slot for which each step of the job's size is taken, [B,S,K].

    B jobs of one profile may run in S slots of equal length, with the intensity [B,S] in each. A
    profile is the K sizes that the job may have, the least first: the work done in a slot [K] and
    the watts drawn [K], both of the whole job, not of one node more. `work` [B] is what is left.

    Greedy of Hanafy et al., "CarbonScaler: Leveraging Cloud Workload Elasticity for Optimizing
    Carbon-Efficiency", Proc. ACM Meas. Anal. Comput. Syst. 7(3), 2023: the next step, in whichever
    slot, is the one with the least added carbon for the work that it adds; within a slot steps are
    taken in order, and a slot may be left empty. Of equal steps the earliest slot's is taken; the
    last step of all is taken for the share that is needed. Where each step adds less work for its
    watts than the one before, no schedule emits less. A step that adds no work is not taken, nor
    any beyond it. Where the work cannot be done in time all steps are taken, and do less than it.
    """
    gain = np.diff(work_per_slot, prepend=0.0)
    useful = int(np.argmin(np.append(gain, 0.0) > 0.0))  # steps before the first without gain
    job = np.arange(carbon_g_per_kwh.shape[0])
    share = np.zeros((*carbon_g_per_kwh.shape, gain.size))
    if useful == 0:
        return share
    watts_per_work = np.append(np.diff(power_w, prepend=0.0)[:useful] / gain[:useful], np.inf)
    taken = np.zeros(carbon_g_per_kwh.shape, dtype=np.int64)
    left = np.maximum(work, 0.0)
    for _ in range(useful * carbon_g_per_kwh.shape[1]):
        is_open = taken < useful
        cost = np.where(is_open, carbon_g_per_kwh, 1.0) * watts_per_work[taken]
        slot = np.argmin(cost, axis=1)
        step = taken[job, slot]
        part = np.minimum(left / gain[step], 1.0)  # 0 for a job that is done, which stays so
        share[job, slot, step] = part
        taken[job, slot] += part > 0.0
        left = np.maximum(left - gain[step], 0.0)
        if not left.any():
            break
    return share
