"""Writes our images' digests into the chart's values; comments and order stay."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deploy.release.faults import ReleaseFault

_TOP = re.compile(r"^(?P<name>\w+):")
_FIELD = re.compile(r"^    (?P<name>repository|digest): .*$")
_NO_IMAGE = "# A checkout has no published image: build it"
_PUBLISHED = "    # The release's image for x86-64 and arm64; a mirror keeps its digest."


@dataclass(frozen=True, slots=True)
class NamedImage:
    """An image in a registry, identified by its digest."""

    repository: str  # with the registry, without a tag
    digest: str  # sha256:…, of the index of all platforms


def values_by_digest(values: str, images: Mapping[str, NamedImage]) -> str:
    """Return values.yaml with the given image of each component.

    Raises ReleaseFault if the text lacks one of the fields of a component.
    """
    lines, component = [], ""
    is_skipping = False  # within the comment that says that no image is published
    for line in values.splitlines():
        if top := _TOP.match(line):
            component = top["name"]
        image, field = images.get(component), _FIELD.match(line)
        if image and _NO_IMAGE in line:
            is_skipping = True
            lines.append(_PUBLISHED)
        elif image and field:
            is_skipping = False
            lines.append(f'    {field["name"]}: "{getattr(image, field["name"])}"')
        elif not is_skipping:
            lines.append(line)
    text = "\n".join(lines) + "\n"
    _require_only_images_changed(yaml.safe_load(values), yaml.safe_load(text), images)
    return text


def _require_only_images_changed(
    before: Mapping[str, Any], after: Mapping[str, Any], images: Mapping[str, NamedImage]
) -> None:
    wanted: dict[str, Any] = {name: dict(part) if name in images else part
                              for name, part in before.items()}  # fmt: skip
    for component, image in images.items():
        current = wanted.get(component, {}).get("image", {})
        if not {"repository", "digest"} <= current.keys():
            raise ReleaseFault(f"values.yaml has no {component}.image with repository and digest")
        given = {"repository": image.repository, "digest": image.digest}
        wanted[component]["image"] = {**current, **given}
    if after != wanted:
        raise ReleaseFault(
            "values.yaml: values other than the images would change; check its format"
        )
