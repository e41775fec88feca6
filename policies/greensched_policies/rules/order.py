"""Rules that choose which waiting job is next.

A rule sees `QueueColumns`, waiting jobs [B,Q], and returns their priorities [B,Q], the least first.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.queue_columns import QueueColumns


def first_come(queue: QueueColumns) -> Floats:
    """Return the time of arrival, [B,Q].

    First come, first served: the baseline of parallel job scheduling.

    Source: Feitelson, Rudolph and Schwiegelshohn, JSSPP 2004.
    """
    return queue.submit_s.copy()


def shortest_first(queue: QueueColumns) -> Floats:
    """Return the expected runtime, [B,Q] (SJF): the least mean wait if jobs run one by one.

    Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly 3,
    1956.

    Source: Smith, Naval Research Logistics Quarterly 1956.
    """
    return queue.estimate_s.copy()


def longest_first(queue: QueueColumns) -> Floats:
    """Return the negative expected runtime, [B,Q] (LJF): no long job is left alone at the end.

    Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Applied Mathematics 17(2), 1969
    (LPT).

    Source: Graham (LPT), SIAM J. Appl. Math. 1969.
    """
    return -queue.estimate_s


def wfp3(queue: QueueColumns) -> Floats:
    """Return −(wait / runtime)³ · cores, [B,Q].

    WFP3 of Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P systems", IEEE
    Cluster 2009.

    Source: Tang et al., IEEE Cluster 2009.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return -((queue.wait_s / queue.estimate_s) ** 3.0) * cores


def unicep(queue: QueueColumns) -> Floats:
    """Return −wait / (log2(cores) · runtime), [B,Q]; less than two cores count as two.

    UNICEP of Tang et al., "Fault-aware, utility-based job scheduling on Blue Gene/P systems", IEEE
    Cluster 2009.

    Source: Tang et al., IEEE Cluster 2009.
    """
    cores = np.maximum(queue.cpu_cores, 2.0)
    return -queue.wait_s / (np.log2(cores) * queue.estimate_s)


# F1 to F4 are polynomials of a job's size and arrival, fitted to simulated queues: Carastan-Santos
# and de Camargo, "Obtaining Dynamic Scheduling Policies with Simulation and Machine Learning",
# SC 2017; the coefficients as in RLScheduler (Zhang et al., SC 2020). Their sizes are whole
# processors; a request below one core counts as one.


def f1(queue: QueueColumns) -> Floats:
    """Return log10(runtime) · cores + 870 · log10(arrival), [B,Q].

    Source: Carastan-Santos and de Camargo, SC 2017.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return np.log10(queue.estimate_s) * cores + 870.0 * np.log10(queue.submit_s)


def f2(queue: QueueColumns) -> Floats:
    """Return √runtime · cores + 25600 · log10(arrival), [B,Q].

    Source: Carastan-Santos and de Camargo, SC 2017.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return np.sqrt(queue.estimate_s) * cores + 25_600.0 * np.log10(queue.submit_s)


def f3(queue: QueueColumns) -> Floats:
    """Return runtime · cores + 6.86e6 · log10(arrival), [B,Q].

    Source: Carastan-Santos and de Camargo, SC 2017.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return queue.estimate_s * cores + 6.86e6 * np.log10(queue.submit_s)


def f4(queue: QueueColumns) -> Floats:
    """Return runtime · √cores + 530000 · log10(arrival), [B,Q].

    Source: Carastan-Santos and de Camargo, SC 2017.
    """
    cores = np.maximum(queue.cpu_cores, 1.0)
    return queue.estimate_s * np.sqrt(cores) + 530_000.0 * np.log10(queue.submit_s)
