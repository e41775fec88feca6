"""What the command lines of the benchmarks share: their smallest size, and where figures go."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEFAULT_POLICY = ROOT / "benchmarks/default-policy.yaml"  # everything by default but its mode
_FOLDER = ROOT / "build/bench"


def parse(
    parser: argparse.ArgumentParser,
    smallest: Mapping[str, Any],
    arguments: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Return the options, after adding `--smallest`, which replaces defaults by these values.

    An option that is given counts beside `--smallest` too.
    """
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="run each part as briefly as possible, to see that it works; the figures mean "
        "nothing and go into a file of their own",
    )
    given = parser.parse_args(arguments)
    if given.smallest:
        parser.set_defaults(**smallest)
        given = parser.parse_args(arguments)
    return given


def result_file(name: str, given: argparse.Namespace, suffix: str = ".json") -> Path:
    """Return the file of a benchmark's figures; those of the smallest size never replace others."""
    return _FOLDER / f"{name}{'-smallest' if given.smallest else ''}{suffix}"


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write figures with sorted keys, so that runs can be compared, and print where they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
