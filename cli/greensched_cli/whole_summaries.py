"""Lists of commands with the whole first sentence of each command's help."""

from typing import Any

from typer.core import TyperGroup

_LONGEST = 1_000  # characters of a sentence


class WholeSummaries(TyperGroup):
    """A group whose commands keep their first sentence, however narrow the terminal is.

    Click cuts it off after one line in plain help, and after 45 characters in completion.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for command in self.commands.values():
            command.short_help = command.get_short_help_str(_LONGEST)
