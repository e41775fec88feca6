"""RAPL's counters as node_exporter exports them."""

from collections.abc import Mapping

from greensched_core.metering.meters.meter import Answers, Meter, NodeMeter, package_and_dram, rate


def _packages(answers: Answers) -> Mapping[str, float]:
    package, dram = (answers.get(f"rapl-{part}", ()) for part in ("package", "dram"))
    return package_and_dram(package, dram)


NODE_EXPORTER = Meter(
    nodes=(
        NodeMeter(
            "rapl",
            "node_exporter: rates of `node_rapl_package_joules_total`, plus dram",
            {
                "rapl-package": rate("node_rapl_package_joules_total"),
                "rapl-dram": rate("node_rapl_dram_joules_total"),
            },
            _packages,
        ),
    )
)
