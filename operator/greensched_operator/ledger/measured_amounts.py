"""A workload's measured energy, carbon and cost, at its site's wall and by the grid's history.

As in the estimates, the energy is a pod's energy times its node's PUE. Carbon and cost are that
energy times the zone's carbon and price at the time. If one part is unknown, so is the sum.
"""

from collections.abc import Callable, Mapping, Sequence

from greensched_core.ledger_records import Amounts
from greensched_core.metering.energy_pieces import Piece
from greensched_core.units import JOULES_PER_KWH, KWH_PER_MWH
from greensched_operator.ledger.grid_history import Known
from greensched_operator.ledger.pod_runs import RanPod

GridMean = Callable[[str, float, float], Known]  # of a zone, from one time to another


def measured_amounts(
    pieces: Mapping[str, Sequence[Piece]],
    pods: Sequence[RanPod],
    default_pue: float,
    grid: GridMean,
) -> Amounts:
    """Return the energy of all pods, with carbon and cost if the grid was known throughout.

    `pieces` holds the energy of each pod, by UID.
    """
    energy_j = 0.0
    carbon_g: float | None = 0.0
    cost: float | None = 0.0
    for pod in pods:
        pue = (pod.site.pue if pod.site else None) or default_pue
        for piece in pieces.get(pod.uid, ()):
            kwh = piece.energy_j * pue / JOULES_PER_KWH
            energy_j += piece.energy_j * pue
            carbon, price = _grid(pod, piece, grid)
            carbon_g = None if carbon_g is None or carbon is None else carbon_g + kwh * carbon
            cost = None if cost is None or price is None else cost + kwh * price / KWH_PER_MWH
    return Amounts(energy_j, carbon_g, cost)


def _grid(pod: RanPod, piece: Piece, grid: GridMean) -> Known:
    if pod.site is None:
        return None, None
    return grid(pod.site.zone, piece.begin_s, piece.until_s)
