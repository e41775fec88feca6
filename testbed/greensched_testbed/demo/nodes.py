"""The demo's nodes as the extender reads them, so that the bill and the decisions agree."""

from collections.abc import Collection

import msgspec

from greensched_core.api_paths import NODES
from greensched_core.kubernetes_api import ApiClient
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.state import Node

_decode = msgspec.json.Decoder(NodeObject).decode


async def believed_nodes(client: ApiClient, names: Collection[str]) -> list[Node]:
    """Return the named nodes as the extender believes them to be."""
    reader = NodeReader(PowerCatalogue(), {})
    nodes = []
    async for page in client.pages(NODES):
        for raw in page.items:
            node, _ = reader.read(_decode(raw))
            if node.name in names:
                nodes.append(node)
    return nodes
