"""Reads kubeconfig files as kubectl does: merges several, and chooses one context.

If several files define a name, the first file counts. Relative paths start at their file's folder.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted

_USUAL = "~/.kube/config"
_Files = Sequence[tuple[Path, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """The fields of a named entry, and the folder where its relative paths start."""

    fields: Mapping[str, Any]
    folder: Path

    def text(self, key: str) -> str:
        """Return a field as text; "" if it is absent or empty."""
        value = self.fields.get(key)
        return "" if value is None else str(value)

    def path(self, key: str) -> Path | None:
        """Return the path in a field; None if it is absent or empty."""
        text = self.text(key)
        return self.folder / Path(text).expanduser() if text else None


@dataclass(frozen=True, slots=True)
class Context:
    """A context: its cluster, user and namespace, and the files that were read."""

    name: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry
    namespace: str
    files: Sequence[Path]

    @property
    def source(self) -> str:
        """Return the files as KUBECONFIG would name them."""
        return os.pathsep.join(map(str, self.files))


def read_context(kubeconfig: Path | None, name: str | None) -> Context:
    """Return the named context, else the current one; raise BadInput if there is none.

    Reads the files of `kubeconfig`, else those of KUBECONFIG, else ~/.kube/config.
    """
    paths = _paths(kubeconfig)
    files = [(path, _read(path)) for path in paths]
    source = os.pathsep.join(map(str, paths))
    contexts, clusters, users = (
        dict(_entries(files, f"{kind}s", kind)) for kind in ("context", "cluster", "user")
    )
    current = (content.get("current-context") for _, content in files)
    wanted = name or next((str(each) for each in current if each), "")
    if not wanted:
        raise BadInput(f"kubeconfig {source}: there is no current context: name one by --context")
    context = _named("context", wanted, contexts, source)
    cluster = _named("cluster", context.text("cluster"), clusters, source)
    if not cluster.text("server"):
        named = quoted(context.text("cluster"))
        raise BadInput(f"kubeconfig {source}: cluster {named} has no server")
    user = KubeconfigEntry({}, cluster.folder)
    if context.text("user"):
        user = _named("user", context.text("user"), users, source)
    return Context(wanted, cluster, user, context.text("namespace") or "default", paths)


def _paths(kubeconfig: Path | None) -> list[Path]:
    """Return the files that exist; raise BadInput if none does."""
    given, variable = str(kubeconfig or ""), os.environ.get("KUBECONFIG", "")
    listed = (given or variable).split(os.pathsep)
    paths = [Path(each).expanduser() for each in listed if each] or [Path(_USUAL).expanduser()]
    if found := [path for path in paths if path.exists()]:
        return found
    if given:
        raise BadInput(f"kubeconfig {given} does not exist")
    if variable:
        raise BadInput(f"kubeconfig {variable}, which KUBECONFIG names, does not exist")
    raise BadInput("no kubeconfig: set KUBECONFIG or pass --kubeconfig")


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as fault:
        reason = " ".join(str(fault).split()) or type(fault).__name__
        raise BadInput(f"kubeconfig {path}: {reason}") from fault
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadInput(f"kubeconfig {path}: it must hold clusters, contexts and users")
    return content


def _entries(files: _Files, kind: str, key: str) -> Iterator[tuple[str, KubeconfigEntry]]:
    """Yield each name with its entry; the first file comes last, so that it counts."""
    for path, content in reversed(files):
        listed = content.get(kind) or []
        if not isinstance(listed, list):
            raise BadInput(f"kubeconfig {path}: {kind} is not a list")
        for each in listed:
            if not isinstance(each, dict) or "name" not in each:
                raise BadInput(f"kubeconfig {path}: {kind}: an entry has no name")
            value = each.get(key) or {}
            if not isinstance(value, dict):
                raise BadInput(
                    f"kubeconfig {path}: {kind}: {key} of {each['name']} is not a mapping"
                )
            yield str(each["name"]), KubeconfigEntry(value, path.absolute().parent)


def _named(
    kind: str, name: str, known: Mapping[str, KubeconfigEntry], source: str
) -> KubeconfigEntry:
    if name not in known:
        close = (
            near(name, sorted(known)) or f"; there are: {', '.join(sorted(known)[:10]) or 'none'}"
        )
        raise BadInput(f"kubeconfig {source}: there is no {kind} {quoted(name)}{close}")
    return known[name]
