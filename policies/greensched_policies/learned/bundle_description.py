"""A checked bundle in words, for people who want to know what they are serving."""

from greensched_policies.learned.bundle import Bundle
from greensched_policies.learned.heads import HEADS


def describe_bundle(bundle: Bundle) -> dict[str, str]:
    """Return what the bundle is, label → text, in the order in which to show it."""
    card = bundle.card
    lines = {
        "name": card.name,
        "folder": str(bundle.folder),
        "state": "untrained: the rule it starts from" if card.untrained else "trained",
        "encoding version": str(card.encoding_version),
        "trained on": card.trained_on,
        "seeds": ", ".join(map(str, card.seeds)),
        "command": card.command,
        "commit": card.commit or "none",
    }
    for name in bundle.heads:
        lines |= _describe_head(bundle, name)
    return lines | {f"evaluation: {name}": f"{v:g}" for name, v in card.evaluation.items()}


def _describe_head(bundle: Bundle, name: str) -> dict[str, str]:
    card, head = bundle.card.heads[name], bundle.heads[name]
    shapes = ", ".join(f"{value.name} {value.shape}" for value in (*card.inputs, *card.outputs))
    return {
        f"{name}: shapes": shapes,
        f"{name}: parameters": str(card.parameters),
        f"{name}: size": f"{head.graph_bytes} bytes",
        f"{name}: sha256": card.sha256,
        f"{name}: {HEADS[name].most:,} candidates": f"{head.self_test_s * 1e3:.2f} ms",
    }
