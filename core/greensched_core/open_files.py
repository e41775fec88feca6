"""The limit on open files of this process, which include connections."""

import resource

_MOST = 65_536  # far above the need of our processes; some machines allow a billion
_OTHERS = 128  # open files other than callers' connections
_SERVERS = 2  # most in one process


def raise_file_limit() -> None:
    """Raise the soft limit on open files to the hard limit, at most 65,536."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_within_limit(most: int) -> int:
    """Return how many connections a server may keep open: `most`, or what the file limit allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, (soft - _OTHERS) // _SERVERS))
