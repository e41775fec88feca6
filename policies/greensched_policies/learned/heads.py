"""The heads that a bundle may hold, and the layout of their graphs."""

from dataclasses import dataclass

from greensched_policies.costs.capping import POWER_CAPS
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.encoding.power_cap_observation import POWER_CAP_FEATURES
from greensched_policies.encoding.slot_observation import SLOT_FEATURES
from greensched_policies.learned.onnx_policy import NODES_INPUT, POWER_CAPS_INPUT, SLOTS_INPUT


@dataclass(frozen=True, slots=True)
class Head:
    """One head: its file, the inputs of its graph, and its time limit."""

    name: str
    candidates_input: str  # [B,features,axis]; the other input is the context, [B,15]
    features: int
    axis: str  # name of the candidates in the layout
    most: int  # candidates in the timed self test
    limit_s: float  # for that many

    @property
    def file(self) -> str:
        """The name of the graph's file in a bundle."""
        return f"{self.name}.onnx"

    @property
    def layout(self) -> str:
        """The inputs and the output, as text."""
        return (
            f"{self.candidates_input} [B,{self.features},{self.axis}], "
            f"context [B,{len(CONTEXT_FEATURES)}], costs [B,{self.axis}]"
        )


# The limit is five times the extender's default model budget: machines are busy at start-up.
WHERE = Head("where", NODES_INPUT, len(NODE_FEATURES), "N", 5_000, 0.1)
# A week of quarter hours. A replan of 10,000 workloads calls it for each, with a day of starts.
WHEN = Head("when", SLOTS_INPUT, len(SLOT_FEATURES), "S", 672, 0.01)
# The power caps of a node's CPUs, or of its GPUs.
HOW_FAST = Head("how_fast", POWER_CAPS_INPUT, len(POWER_CAP_FEATURES), "L", POWER_CAPS.size, 0.01)
HEADS = {head.name: head for head in (WHERE, WHEN, HOW_FAST)}
