"""What a process makes of the files that it may open; each in a process of its own."""

import subprocess
import sys

import pytest

SAY = """
import resource
from greensched_core.open_files import connections_within_limit, raise_file_limit
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], connections_within_limit(512))
"""


@pytest.mark.finding(8)
@pytest.mark.parametrize(
    ("soft", "hard", "raised", "connections"),
    [
        pytest.param(256, 4096, 4096, 512, id="raised-and-enough"),
        pytest.param(1024, 1024, 1024, 448, id="two-servers-share-what-there-is"),
        pytest.param(64, 64, 64, 1, id="hardly-any"),
    ],
)
def test_a_process_opens_what_it_may_and_keeps_no_more_connections_than_that(
    soft: int, hard: int, raised: int, connections: int
) -> None:
    script = SAY.format(soft=soft, hard=hard)
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert told.stdout.split() == [b"%d" % raised, b"%d" % connections]
