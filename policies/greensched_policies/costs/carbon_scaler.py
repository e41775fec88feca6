"""Chooses the number of nodes of an elastic job in each slot until its deadline."""

import numpy as np

from greensched_policies.costs.cost import Floats


def carbon_scaler(
    carbon_g_per_kwh: Floats, work_per_slot: Floats, power_w: Floats, work: Floats
) -> Floats:
    """Return the share of each slot for which each step of the job's size is used, [B,S,K].

    B jobs of one profile may run in S slots of equal length; the carbon intensity is [B,S]. A
    profile has K job sizes, the smallest first: the work done in a slot [K] and the watts drawn
    [K], both for the whole job, not per added node. `work` [B] is the remaining work.

    Greedy algorithm of Hanafy et al., "CarbonScaler: Leveraging Cloud Workload Elasticity for
    Optimizing Carbon-Efficiency", Proc. ACM Meas. Anal. Comput. Syst. 7(3), 2023: the next step, in
    any slot, is the one with the least added carbon per added work. Steps within a slot are used in
    order, and a slot may stay empty. Of equal steps the earliest slot's is used; the last step of
    all is used only for the share that is needed. If each step adds less work for its watts than
    the one before, no schedule emits less. A step that adds no work is not used, nor any beyond it.
    If the work cannot be done in time, all steps are used and do only a part of it.
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
        part = np.minimum(left / gain[step], 1.0)  # 0 for a job that is done
        share[job, slot, step] = part
        taken[job, slot] += part > 0.0
        left = np.maximum(left - gain[step], 0.0)
        if not left.any():
            break
    return share
