"""The start of one workload, by a plan that stays as it is."""

from copy import deepcopy

from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook
from greensched_policies.planning.planning import Chosen, StartRequest, plan_all


def choose_start(outlook: Outlook, plan: CorePlan, request: StartRequest, now_s: float) -> Chosen:
    """Return the start that a workload's rule prefers."""
    return plan_all(outlook, deepcopy(plan), [request], now_s)[0]
