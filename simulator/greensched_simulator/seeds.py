"""Random numbers by seed and purpose: what one part of a world draws shifts no other part."""

import hashlib

import numpy as np


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the generator of one purpose, such as `jobs/runtime`; the same each time."""
    digest = hashlib.sha256(purpose.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])
