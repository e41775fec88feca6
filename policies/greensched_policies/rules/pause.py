"""Rules that choose whether a running job may be suspended.

A rule sees `PauseColumns`, workloads [B,N], and returns what resuming each costs [B,N], in slots of
running; infinity: it is never suspended.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import PauseColumns


def run_through(work: PauseColumns) -> Floats:
    """Return infinity for each workload, [B,N].

    Source: work without checkpoints.
    """
    return np.full(work.restart_s.shape, np.inf)


def pause_freely(work: PauseColumns) -> Floats:
    """Return 0 for each workload, [B,N]: resuming costs only the time that it takes.

    The interruptible workloads of Wiesner et al., "Let's Wait Awhile", Middleware 2021, and of the
    suspend-resume policies that GAIA (Hanafy et al., ASPLOS 2024) compares with.

    Source: Wiesner et al. (Let's Wait Awhile), Middleware 2021.
    """
    return np.zeros(work.restart_s.shape)


def scale_freely(work: PauseColumns) -> Floats:
    """Return 0 for each workload, [B,N]; elastic work also has more or fewer workers.

    The catalogue also names it in SCALE_RULES.

    Source: Hanafy et al. (CarbonScaler), 2023.
    """
    return np.zeros(work.restart_s.shape)


def pause_if_worth(work: PauseColumns) -> Floats:
    """Return the time to resume, in slots of running, [B,N].

    Ours: restart_s / slot_s, at the cost of the slot in which the work is resumed. So it suits when
    rules whose cost is one of running: windows, not thresholds. Startup draws at most as much power
    as work: Opitz's thesis measured 7.5 % more energy for one checkpoint and resume of a
    training of two minutes.

    Source: this project.
    """
    return work.restart_s / work.slot_s
