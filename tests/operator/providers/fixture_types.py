"""Types of the fixtures with which providers are tested."""

from collections.abc import Callable

from greensched_operator.providers.answers import Answer, Request

Golden = Callable[[str], bytes]  # reads a stored answer by its file's name
Talk = Callable[..., tuple[Answer, list[Request]]]  # (conversation, *replies) -> answer, requests
