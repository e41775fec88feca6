import json
import subprocess
import sys
from typing import Any

import pytest

from greensched_cli.installation import command_for, install_command
from tests.repository_files import ROOT

WHEEL = "greensched-0.2.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        pytest.param(
            {"url": "file:///src/greensched", "dir_info": {"editable": True}},
            "pip install -e '/src/greensched[cli]'",
            id="an-editable-checkout",
        ),
        pytest.param(
            {"url": "file:///src/green%20sched", "dir_info": {}},
            "pip install '/src/green sched[cli]'",
            id="a-copy-of-a-checkout",
        ),
        pytest.param(
            {"url": f"file:///tmp/{WHEEL}", "archive_info": {"hashes": {"sha256": "00"}}},
            f"pip install 'greensched[cli] @ file:///tmp/{WHEEL}'",
            id="a-wheel",
        ),
        pytest.param(
            {"url": f"https://example.com/{WHEEL}", "archive_info": {}},
            f"pip install 'greensched[cli] @ https://example.com/{WHEEL}'",
            id="a-wheel-of-a-server",
        ),
        pytest.param(
            {
                "url": "https://example.com/greensched.git",
                "vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "main"},
            },
            "pip install 'greensched[cli] @ git+https://example.com/greensched.git@c0ffee'",
            id="a-commit",
        ),
        pytest.param(None, "pip install 'greensched[cli]'", id="an-index"),
    ],
)
def test_an_extra_is_added_from_where_the_package_came_from(
    origin: dict[str, Any] | None, command: str
) -> None:
    assert command_for("cli", json.dumps(origin) if origin else None) == command


def test_this_checkout_names_its_own_folder() -> None:
    assert install_command("simulator") == f"pip install -e '{ROOT}[simulator]'"


def test_where_nothing_is_installed_the_name_alone_is_given() -> None:
    code = "from greensched_cli.installation import install_command; print(install_command('cli'))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(ROOT / "cli")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "pip install 'greensched[cli]'\n"
