"""Order rules F1 to F4: polynomials of a job's size and arrival, fitted to simulated queues.

Carastan-Santos and de Camargo, "Obtaining Dynamic Scheduling Policies with Simulation and Machine
Learning", SC 2017; the coefficients as in RLScheduler (Zhang et al., SC 2020). Their sizes are
whole processors; a request below one core counts as one.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def f1(queue: QueueColumns) -> Floats:
    """Return log10(runtime) · cores + 870 · log10(arrival), [B,Q]."""
    cores = np.maximum(queue.cpu_cores, 1.0)
    return np.log10(queue.estimate_s) * cores + 870.0 * np.log10(queue.submit_s)


def f2(queue: QueueColumns) -> Floats:
    """Return √runtime · cores + 25600 · log10(arrival), [B,Q]."""
    cores = np.maximum(queue.cpu_cores, 1.0)
    return np.sqrt(queue.estimate_s) * cores + 25_600.0 * np.log10(queue.submit_s)


def f3(queue: QueueColumns) -> Floats:
    """Return runtime · cores + 6.86e6 · log10(arrival), [B,Q]."""
    cores = np.maximum(queue.cpu_cores, 1.0)
    return queue.estimate_s * cores + 6.86e6 * np.log10(queue.submit_s)


def f4(queue: QueueColumns) -> Floats:
    """Return runtime · √cores + 530000 · log10(arrival), [B,Q]."""
    cores = np.maximum(queue.cpu_cores, 1.0)
    return queue.estimate_s * np.sqrt(cores) + 530_000.0 * np.log10(queue.submit_s)
