"""A checked bundle in words, for people who want to know what they are serving."""

from greensched_policies.bundle import Bundle


def describe_bundle(bundle: Bundle) -> dict[str, str]:
    """Return what the bundle is, label → text, in the order in which to show it."""
    card = bundle.card
    head = card.heads["where"]
    shapes = ", ".join(f"{value.name} {value.shape}" for value in (*head.inputs, *head.outputs))
    lines = {
        "name": card.name,
        "folder": str(bundle.folder),
        "state": "untrained: the rule it starts from" if card.untrained else "trained",
        "encoding version": str(card.encoding_version),
        "trained on": card.trained_on,
        "seeds": ", ".join(map(str, card.seeds)),
        "command": card.command,
        "commit": card.commit or "none",
        "where: shapes": shapes,
        "where: parameters": str(head.parameters),
        "where: size": f"{bundle.graph_bytes} bytes",
        "where: sha256": head.sha256,
        "where: 5,000 candidates": f"{bundle.self_test_s * 1e3:.2f} ms",
    }
    return lines | {f"evaluation: {name}": f"{v:g}" for name, v in card.evaluation.items()}
