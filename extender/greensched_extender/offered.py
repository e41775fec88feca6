"""The nodes that a request offers: their rows, and their names only if they are needed."""

from functools import cached_property

import numpy as np

from greensched_extender import protocol
from greensched_extender.view import NodeNames
from greensched_policies.library.node_names import NO_ROW, Rows


class Offered:
    """The node names of a request, decoded on demand."""

    def __init__(self, args: protocol.ExtenderArgs) -> None:
        self._args = args

    @cached_property
    def names(self) -> list[str]:
        """The names; raises BadInput when the request holds no list of names."""
        return protocol.read_names(self._args)

    def rows(self, known: NodeNames) -> tuple[Rows, int]:
        """Return the row of each name, NO_ROW for unknown ones, and how many those are.

        Raises BadInput as `names` does.
        """
        found = None
        if not protocol.sends_whole_nodes(self._args):
            found = known.entries.rows(self._args.NodeNames)
        if found is None:
            rows = known.rows(self.names)
            return rows, int(np.count_nonzero(rows == NO_ROW))
        return found
