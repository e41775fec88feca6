"""The heads that a bundle may hold, and how each one's graph is laid out."""

from dataclasses import dataclass

from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.encoding.slot_observation import SLOT_FEATURES
from greensched_policies.learned.onnx_policy import NODES_INPUT, SLOTS_INPUT


@dataclass(frozen=True, slots=True)
class Head:
    """One head: its file, what its graph takes, and how fast it has to answer."""

    name: str
    candidates_input: str  # [B,features,axis]; beside it the context, [B,8]
    features: int
    axis: str  # the candidates, as the layout calls them
    most: int  # candidates that it is timed with
    limit_s: float  # for so many

    @property
    def file(self) -> str:
        """The name of the graph's file in a bundle."""
        return f"{self.name}.onnx"

    @property
    def layout(self) -> str:
        """What goes in and comes out, in words."""
        return (
            f"{self.candidates_input} [B,{self.features},{self.axis}], "
            f"context [B,{len(CONTEXT_FEATURES)}], costs [B,{self.axis}]"
        )


# Five times the extender's default model budget: start-up runs on a busy machine.
WHERE = Head("where", NODES_INPUT, len(NODE_FEATURES), "N", 5_000, 0.1)
# A week of quarter hours. A replan of 10,000 workloads asks as often, a day of starts each.
WHEN = Head("when", SLOTS_INPUT, len(SLOT_FEATURES), "S", 672, 0.01)
HEADS = {head.name: head for head in (WHERE, WHEN)}
