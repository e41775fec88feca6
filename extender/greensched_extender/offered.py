"""The nodes that a request offers: their rows, and their names only if they are needed."""

from functools import cached_property

from greensched_extender import protocol
from greensched_extender.rows import Rows
from greensched_extender.view import NodeNames


class Offered:
    """The node names of a request, decoded on demand."""

    def __init__(self, args: protocol.ExtenderArgs) -> None:
        self._args = args

    @cached_property
    def names(self) -> list[str]:
        """The names; raises BadInput when the request holds no list of names."""
        return protocol.read_names(self._args)

    def rows(self, known: NodeNames) -> Rows:
        """Return the row of each name, NO_ROW for unknown names; raise BadInput as `names` does."""
        rows = None
        if not protocol.sends_whole_nodes(self._args):
            rows = known.hashes.rows(bytes(self._args.NodeNames))
        return known.rows(self.names) if rows is None else rows
