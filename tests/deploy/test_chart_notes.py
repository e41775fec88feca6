"""What Helm prints after an installation."""

import subprocess
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.helm

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def notes(helm_offline: Run) -> Callable[..., str]:
    """Return the notes of an installation with these values, which is not made."""

    def run(*arguments: str) -> str:
        asked = ["install", "greensched", "CHART", "--dry-run=client", *arguments]
        result = helm_offline(*asked)
        assert result.returncode == 0, result.stderr
        return " ".join(result.stdout.partition("NOTES:")[2].split())

    return run


def test_an_image_of_no_registry_is_said_to_need_loading(notes: Callable[..., str]) -> None:
    for component in ("extender", "operator"):
        name = f"localhost/greensched-{component}"
        loaded = "it runs only on nodes into which it was loaded before"
        assert f"{name}, which no registry serves: {loaded}" in notes()
        pushed = f"{component}.image.repository=registry.example.com/greensched-{component}"
        assert name not in notes("--set", pushed)


def test_a_policy_that_is_still_to_be_made_is_not_said_to_be_there(
    notes: Callable[..., str],
) -> None:
    told = notes("--set", "policy.mode=enforce")
    assert "GreenPolicy, which the controller creates now (helm test checks it)" in told
