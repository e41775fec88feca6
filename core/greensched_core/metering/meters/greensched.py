"""A user's own meter at the plug: any exporter of `greensched_node_power_watts`."""

from greensched_core.metering.meters.meter import BY_NODE, Meter, NodeMeter, answer_to

GREENSCHED = Meter(
    nodes=(
        NodeMeter(
            "greensched",
            "GreenSched: `greensched_node_power_watts`",
            {"greensched": f"max by ({BY_NODE}) (greensched_node_power_watts)"},
            answer_to("greensched"),
            sees_gpus=True,
        ),
    )
)
