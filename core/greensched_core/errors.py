"""All errors that we raise on purpose; each class says what its catcher does.

GreenSchedError
├── BadInput              report it to the sender: the message says what, where and what to do
│   ├── BadQuantity       … a Kubernetes quantity that does not parse
│   └── BadDuration       … a duration that does not parse
├── TaskEnded             end the process with status 1: a task ended that must not
├── SignalUnavailable     fall back to the next source, and count it
└── ApiUnavailable        try again later; the API server did not answer as expected
    └── ResourceExpired   list again: the watched resourceVersion is gone (HTTP 410)
"""


class GreenSchedError(Exception):
    """The root of all errors raised on purpose."""


class BadInput(GreenSchedError):
    """The input is wrong; the message says what, where and what to do."""


class BadQuantity(BadInput):
    """A string that is not a Kubernetes quantity."""


class BadDuration(BadInput):
    """A string that is not a duration."""


class TaskEnded(GreenSchedError):
    """A task ended before its process did; the message names it."""


class SignalUnavailable(GreenSchedError):
    """No usable value from this source now; the caller falls back and counts it."""


class ApiUnavailable(GreenSchedError):
    """The API server did not answer as expected; the caller tries again later."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ResourceExpired(ApiUnavailable):
    """The watched resourceVersion is gone (HTTP 410); the caller lists again."""
