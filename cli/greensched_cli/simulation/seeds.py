"""The option --seed of the verbs that draw one world from a scenario."""

from typing import Annotated

import typer

from greensched_core.errors import BadInput

LARGEST_SEED = 2**63 - 1  # a scenario's seed has the same limit
Seed = Annotated[int | None, typer.Option(help="Random seed; by default the scenario's.")]


def require_seed(seed: int | None) -> None:
    """Raise BadInput for a seed that no scenario may have."""
    if seed is not None and not 0 <= seed <= LARGEST_SEED:
        raise BadInput(f"--seed must be from 0 to {LARGEST_SEED}, not {seed}")
