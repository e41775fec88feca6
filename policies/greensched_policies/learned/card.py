"""What a bundle says about itself: `card.json`."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TensorCard(_Strict):
    """One input or output of a graph."""

    name: str
    dtype: str
    shape: list[int | str]  # a name stands for a dynamic axis


class Sample(_Strict):
    """An input and the answer it must get, checked at every load."""

    nodes: list[list[list[float]]] | None = None  # [B,N,16], of the `where` head
    slots: list[list[list[float]]] | None = None  # [B,S,8], of the `when` head
    context: list[list[float]]  # [B,8]
    relative_cost: list[list[float]]  # [B,N] or [B,S]


class HeadCard(_Strict):
    """One graph of the bundle."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # of the graph file
    inputs: list[TensorCard]
    outputs: list[TensorCard]
    parameters: Annotated[int, Field(ge=0)]  # real numbers in the graph's initialisers
    sample: Sample


class Card(_Strict):
    """What the graphs are, where they come from and how good they were found to be."""

    name: str
    encoding_version: int
    untrained: bool  # True: the rule it starts from, and nothing learned
    trained_on: str  # in words: workloads, grids, years
    seeds: list[int]
    command: str  # makes the bundle again
    commit: str | None  # of the code that trained it; None for what the code exports as is
    evaluation: dict[str, float]  # figure → value; empty when untrained
    heads: dict[str, HeadCard]
