"""Reads a bundle's description, `card.json`, without numpy and onnxruntime."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greensched_core.errors import BadInput

CARD_FILE = "card.json"
MAX_CARD_BYTES = 1 << 20
SHIPPED_PRIOR = Path(__file__).parents[1] / "models" / "prior"


class BundleError(BadInput):
    """A bundle that must not be served; the message says what, where and what to do."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TensorCard(_Strict):
    """One input or output of a graph."""

    name: str
    dtype: str
    shape: list[int | str]  # a name marks a dynamic axis


class CardSample(_Strict):
    """An input and its expected answer, checked at every load."""

    nodes: list[list[list[float]]] | None = None  # [B,N,22], of the `where` head
    slots: list[list[list[float]]] | None = None  # [B,S,15], of the `when` head
    power_caps: list[list[list[float]]] | None = None  # [B,L,13], of the `how_fast` head
    context: list[list[float]]  # [B,15]
    relative_cost: list[list[float]]  # [B,N], [B,S] or [B,L]


class HeadCard(_Strict):
    """One graph of the bundle."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # of the graph file
    inputs: list[TensorCard]
    outputs: list[TensorCard]
    parameters: Annotated[int, Field(ge=0)]  # real numbers in the graph's initialisers
    sample: CardSample


class Card(_Strict):
    """The description of the graphs: their origin, training and evaluation."""

    name: str
    encoding_version: int
    untrained: bool  # True: only the rule that it starts from, nothing learned
    trained_on: str  # in words: workloads, grids, years
    seeds: list[int]
    command: str  # reproduces the bundle
    commit: str | None  # of the code that trained it; None for an untrained export
    evaluation: dict[str, float]  # figure → value; empty when untrained
    heads: dict[str, HeadCard]


def parse_card(folder: Path) -> Card:
    """Return the card of a bundle, used or not; raises BundleError where there is no valid one."""
    path = folder / CARD_FILE
    try:
        return Card.model_validate_json(read_limited(path, MAX_CARD_BYTES))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'card'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise BundleError(f"{path}: {faults}; export the bundle again") from error


def read_limited(path: Path, limit_bytes: int) -> bytes:
    """Return the content of a bundle's file; raises BundleError if it is absent or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be read ({error.strerror}); a bundle is a folder with {CARD_FILE} "
            "and the graphs that it names: where.onnx, when.onnx or how_fast.onnx"
        ) from error
    if len(content) > limit_bytes:
        raise BundleError(f"{path}: larger than {limit_bytes} bytes; use a smaller net")
    return content


def describe_card(folder: Path) -> dict[str, str]:
    """Return the card of a bundle as text, label → text, in the order to show it.

    Raises BundleError where it has no valid card. The graphs are not checked.
    """
    card = parse_card(folder)
    lines = {
        "name": card.name,
        "folder": str(folder),
        "state": "untrained: the rule it starts from" if card.untrained else "trained",
        "encoding version": str(card.encoding_version),
        "trained on": card.trained_on,
        "seeds": ", ".join(map(str, card.seeds)),
        "command": card.command,
        "commit": card.commit or "none",
    }
    for name, head in card.heads.items():
        shapes = ", ".join(f"{each.name} {each.shape}" for each in (*head.inputs, *head.outputs))
        lines |= {
            f"{name}: shapes": shapes,
            f"{name}: parameters": str(head.parameters),
            f"{name}: sha256": head.sha256,
        }
    return lines | {f"evaluation: {name}": f"{v:g}" for name, v in card.evaluation.items()}
