"""The provenance of a release: an in-toto statement with SLSA provenance, version 1.

Formats: https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"


@dataclass(frozen=True, slots=True)
class Origin:
    """Source, builder, materials and times of a build."""

    repository: str  # git's address of the source; empty if git has none
    commit: str
    version: str
    builder: str  # identity of the machine or workflow that built it
    began: str  # RFC 3339
    ended: str
    materials: Mapping[str, str]  # sha256 of other inputs, by name or address


def statement(origin: Origin, subjects: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement for `subjects`: sha256 of every file and image, by name."""
    source = {"uri": f"git+{origin.repository}", "digest": {"gitCommit": origin.commit}}
    materials = [
        {"uri": name, "digest": {"sha256": digest}}
        for name, digest in sorted(origin.materials.items())
    ]
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": name, "digest": {"sha256": digest}}
            for name, digest in sorted(subjects.items())
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": "https://greensched.io/release/v1",
                "externalParameters": {"version": origin.version},
                "resolvedDependencies": [source, *materials],
            },
            "runDetails": {
                "builder": {"id": origin.builder},
                "metadata": {"startedOn": origin.began, "finishedOn": origin.ended},
            },
        },
    }


def base_image(dockerfile: str, build_options: str) -> tuple[str, str] | None:
    """Return name and sha256 of the base image; None if it has only a tag."""
    found = re.findall(r"PYTHON_IMAGE=(\S+)", f"{dockerfile}\n{build_options}")
    name, _, digest = (found[-1] if found else "").partition("@sha256:")
    return (f"docker://{name}", digest) if digest else None
