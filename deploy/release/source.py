"""The commit that is released, from git."""

from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from deploy.release.faults import ReleaseFault
from deploy.release.programs import run


@dataclass(frozen=True, slots=True)
class Source:
    """What was checked out."""

    commit: str
    commit_time_s: int
    repository: str  # address of the remote, without userinfo; empty if there is none


def checked_out(*, may_differ: bool) -> Source:
    """Return the commit; raise ReleaseFault if files differ from it, unless they may."""
    changed = run("git", "status", "--porcelain").splitlines()
    if changed and not may_differ:
        raise ReleaseFault(
            f"{len(changed)} files differ from the commit ({changed[0].strip()}, …): commit or"
            " remove them, or rehearse with REHEARSAL=1"
        )
    commit, seconds = run("git", "log", "-1", "--format=%H %ct").split()
    remotes = run("git", "remote").split()
    address = run("git", "remote", "get-url", remotes[0]).strip() if remotes else ""
    return Source(commit, int(seconds), without_userinfo(address))


def without_userinfo(address: str) -> str:
    """Return a remote's address without user, password or token, which CI jobs add to it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
