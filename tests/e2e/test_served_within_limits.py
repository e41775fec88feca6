"""What kubelets measure of our containers, after all that the tests before did to them."""

from greensched_testbed.end_to_end.clusters import Cluster
from greensched_testbed.end_to_end.container_memory import ContainerMemory
from greensched_testbed.end_to_end.release import DEPLOYMENTS

MOST_OF_A_LIMIT = 0.5


def test_no_container_took_half_of_its_memory_limit(
    cluster: Cluster, memory: ContainerMemory
) -> None:
    cluster.wait_until(lambda: memory.shares().keys() >= set(DEPLOYMENTS), "all are measured")
    shares = dict(memory.shares())
    assert {name: share for name, share in shares.items() if share > MOST_OF_A_LIMIT} == {}
