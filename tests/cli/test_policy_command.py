import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from greensched_policies.learned.card import SHIPPED_PRIOR, describe_card
from greensched_policies.rules.catalogue import WHEN_RULES

Run = Callable[..., Any]


def test_the_shipped_bundle_would_be_loaded(greensched: Run) -> None:
    done = greensched("policy", "check")
    assert done.returncode == 0, done.stderr
    assert f"{SHIPPED_PRIOR}: would be loaded. prior," in done.stdout


def test_a_spoilt_bundle_is_refused_with_the_reason(greensched: Run, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(SHIPPED_PRIOR, tmp_path / "bundle"))
    (bundle / "where.onnx").write_bytes(b"cut off")
    done = greensched("policy", "check", str(bundle))
    assert (done.returncode, done.stdout) == (2, "")
    assert "sha256" in done.stderr and "Traceback" not in done.stderr


def test_a_green_policy_is_no_bundle_and_the_message_says_what_checks_it(
    greensched: Run, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("kind: GreenPolicy\n")
    done = greensched("policy", "check", str(tmp_path / "policy.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is a file; this checks a bundle's folder" in done.stderr
    assert "greensched scenario check" in done.stderr


def test_show_says_that_the_shipped_bundle_was_not_trained(greensched: Run) -> None:
    done = greensched("policy", "show")
    assert done.returncode == 0, done.stderr
    assert "prior" in done.stdout and "untrained" in done.stdout.lower()


@pytest.mark.parametrize("columns", ["60", "80"])
def test_show_cuts_no_value_off_on_a_narrow_terminal(greensched: Run, columns: str) -> None:
    done = greensched("policy", "show", COLUMNS=columns, FORCE_COLOR="1")  # as on a terminal
    lines = re.sub(r"\x1b\[[\d;]*m", "", done.stdout).splitlines()
    assert max(map(len, lines)) <= int(columns)
    values = "".join(line[lines[0].index("VALUE") :] for line in lines[1:])
    told = "".join(describe_card(SHIPPED_PRIOR).values())
    assert "".join(values.split()) == "".join(told.split())


def test_show_prints_the_card_itself_for_programs(greensched: Run) -> None:
    done = greensched("policy", "show", "-o", "json")
    card = json.loads((SHIPPED_PRIOR / "card.json").read_text(encoding="utf-8"))
    assert json.loads(done.stdout) == card


def test_list_prints_every_name_by_its_kind(greensched: Run) -> None:
    done = greensched("policy", "list", "-o", "yaml")
    assert done.returncode == 0, done.stderr
    told = yaml.safe_load(done.stdout)
    assert told["when"] == [*WHEN_RULES, "green-policy"] and "wait-awhile" in told["preset"]
    shown = greensched("policy", "list").stdout
    assert all(f"  {name}\n" in shown for names in told.values() for name in names)


def test_a_check_is_reported_as_yaml_too(greensched: Run) -> None:
    done = greensched("policy", "check", "-o", "yaml")
    assert done.returncode == 0, done.stderr
    told = yaml.safe_load(done.stdout)
    assert (told["name"], told["isTrained"]) == ("prior", False)
    assert told["heads"]["where"]["candidates"] == 5_000
