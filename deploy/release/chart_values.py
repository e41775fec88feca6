"""The chart's values with our images named by digest; comments and order stay as they are."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deploy.release.faults import ReleaseFault

_TOP = re.compile(r"^(?P<name>\w+):")
_FIELD = re.compile(r"^    (?P<name>repository|digest): .*$")
_NO_IMAGE = "# No image is published: build it"
_PUBLISHED = "    # The release's own image, of x86-64 and arm64; a mirror keeps its digest."


@dataclass(frozen=True, slots=True)
class NamedImage:
    """An image in a registry that can never become another."""

    repository: str  # with the registry, without a tag
    digest: str  # sha256:…, of the index of all platforms


def values_by_digest(values: str, images: Mapping[str, NamedImage]) -> str:
    """Return values.yaml in which each component's image is the one given.

    Raises ReleaseFault where the text has not both fields for each.
    """
    lines, component = [], ""
    is_told = False  # within the comment that says that nothing is published
    for line in values.splitlines():
        if top := _TOP.match(line):
            component = top["name"]
        image, field = images.get(component), _FIELD.match(line)
        if image and _NO_IMAGE in line:
            is_told = True
            lines.append(_PUBLISHED)
        elif image and field:
            is_told = False
            lines.append(f'    {field["name"]}: "{getattr(image, field["name"])}"')
        elif not is_told:
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
        told = wanted.get(component, {}).get("image", {})
        if not {"repository", "digest"} <= told.keys():
            raise ReleaseFault(f"values.yaml has no {component}.image with repository and digest")
        given = {"repository": image.repository, "digest": image.digest}
        wanted[component]["image"] = {**told, **given}
    if after != wanted:
        raise ReleaseFault("values.yaml: other values than the images would change; look at it")
