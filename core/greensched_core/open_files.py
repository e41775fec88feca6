"""How many files, connections among them, this process may have open."""

import resource

_MOST = 65_536  # far beyond what any process of ours needs; some machines allow a billion
_OTHERS = 128  # that are open beside connections of callers
_SERVERS = 2  # of one process, at most


def raise_file_limit() -> None:
    """Let this process open as many files as it may, up to 65,536."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_within_limit(most: int) -> int:
    """Return how many connections a server may keep open: `most`, or fewer where files are few."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, (soft - _OTHERS) // _SERVERS))
