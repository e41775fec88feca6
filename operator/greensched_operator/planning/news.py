"""What has changed of the work that opted in, for those who report on it."""

from dataclasses import dataclass, field

from greensched_operator.holding.judging import ReleaseNow
from greensched_operator.objects.workloads import Work


@dataclass
class News:
    """The changes since the last `take_news`."""

    arrived: dict[str, Work] = field(default_factory=dict)  # opted in, and not held
    ended: list[Work] = field(default_factory=list)  # seen before their end
    started: list[Work] = field(default_factory=list)  # by others; still marked as held by us
    marked: list[Work] = field(default_factory=list)  # as `started`, again until unmarked
    released: list[Work] = field(default_factory=list)  # by GreenSched, but not this controller
    deleted: list[Work] = field(default_factory=list)  # while they were held
    over: dict[str, ReleaseNow] = field(
        default_factory=dict
    )  # started or ended, but the condition still announces a planned start
