"""Pause rule: as often as the when rule likes, as if resuming took nothing."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import PauseColumns


def pause_freely(work: PauseColumns) -> Floats:
    """Return 0 for each workload, [B,N]: nothing beside the time that it takes.

    The interruptible workloads of Wiesner et al., "Let's Wait Awhile", Middleware 2021, and of the
    suspend-resume policies that GAIA (Hanafy et al., ASPLOS 2024) compares with.
    """
    return np.zeros(work.restart_s.shape)
