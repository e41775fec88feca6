"""Reads Kubernetes quantity strings as numbers.

Grammar (k8s.io/apimachinery/pkg/api/resource/quantity.go): a signed decimal number followed by a
binary suffix (Ki … Ei), a decimal suffix (n, u, m, "", k, M … E) or a decimal exponent (e3, E-2).
"""

import re
from functools import lru_cache

from greensched_core.errors import BadQuantity
from greensched_core.quoting import quoted

_MULTIPLIERS = {
    "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0,
    "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)
_LONGEST = 64  # characters; quantity.go writes at most 18 digits, and the cache keeps each text


@lru_cache(maxsize=4096)  # a cluster's nodes and pods share a handful of strings
def parse_quantity(text: str) -> float:
    """Return the number of a Kubernetes quantity such as `100m` or `2Gi`.

    Raises BadQuantity if `text` is not a quantity, has more than 64 characters, or is not finite.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise BadQuantity(
            f"{quoted(text)} is not a Kubernetes quantity; write for example 500m, 2, 1.5Gi"
        )
    number = float(match["number"])
    if match["exponent"] is not None:
        number = float(
            f"{match['number']}e{match['exponent']}"
        )  # may be infinite, where ** would raise
    else:
        number *= _MULTIPLIERS[match["suffix"]]
    if number in (float("inf"), float("-inf")):
        raise BadQuantity(f"{quoted(text)} is too large for a quantity")
    return number
