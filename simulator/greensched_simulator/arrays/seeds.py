"""Random numbers by seed and purpose, so that draws for one part of a world shift no other."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from greensched_core.errors import BadInput


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator of a purpose such as `jobs/runtime`; equal inputs, equal numbers."""
    digest = hashlib.sha256(purpose.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])


@contextmanager
def naming_seed(seed: int) -> Iterator[None]:
    """Put the seed before the message of any BadInput raised within."""
    try:
        yield
    except BadInput as fault:
        raise BadInput(f"with seed {seed}: {fault}") from fault
