"""The commit that is released, from git."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from deploy.release.faults import ReleaseFault
from deploy.release.programs import ROOT, run


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


def require_no_other_tag(version: str, commit: str, repository: Path = ROOT) -> None:
    """Raise ReleaseFault if the version's tag is at another commit: it is released already."""
    tag = f"v{version}"
    if not run("git", "-C", repository, "tag", "--list", tag).strip():
        return
    tagged = run("git", "-C", repository, "rev-list", "--max-count=1", f"refs/tags/{tag}").strip()
    if tagged != commit:
        raise ReleaseFault(
            f"the tag {tag} is at commit {tagged[:12]}, and {commit[:12]} is checked out: check"
            f" out {tag}, or set the next version and commit it"
        )


def without_userinfo(address: str) -> str:
    """Return a remote's address without user, password or token, which CI jobs add to it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
