"""Sizes of functions as the house rules count them; imports none of our code, to be quick."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    """Length and number of parameters of a function."""

    name: str  # with file and line
    lines: int  # includes the signature, but not decorators and docstring
    parameters: int  # without `self`; 0 for a verb of the command line, since they are its options


def sizes_of(paths: Sequence[Path]) -> list[Size]:
    """Return the sizes of all functions in some files."""
    verbs = verbs_of(paths)
    return [each for path in paths for each in _sizes_in(path, verbs)]


def verbs_of(paths: Sequence[Path]) -> set[str]:
    """Return the dotted names of the functions that become commands of a `typer.Typer()`.

    They are decorated with its `command()` or `callback()`, or passed to the result of these.
    """
    return {name for path in paths for name in _verbs_in(path)}


def named(path: Path) -> str:
    """Return a path relative to the root, for output."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _sizes_in(path: Path, verbs: set[str]) -> Iterator[Size]:
    for node in ast.walk(_tree(path)):
        if not isinstance(node, Function):
            continue
        assert node.end_lineno is not None
        lines = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            assert node.body[0].end_lineno is not None
            lines -= node.body[0].end_lineno - node.body[0].lineno + 1
        is_verb = f"{_module(path)}.{node.name}" in verbs
        count = 0 if is_verb else _parameters(node.args)
        yield Size(f"{named(path)}:{node.lineno} {node.name}", lines, count)


def _parameters(given: ast.arguments) -> int:
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names = [each.arg for each in every if each is not None]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _verbs_in(path: Path) -> Iterator[str]:
    tree = _tree(path)
    makers = {
        f"{target.id}.{what}"
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("typer.Typer(")
        for target in node.targets
        if isinstance(target, ast.Name)
        for what in ("command", "callback")
    }
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def makes_a_verb(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) in makers

    for node in ast.walk(tree):
        if isinstance(node, Function) and any(map(makes_a_verb, node.decorator_list)):
            yield f"{_module(path)}.{node.name}"
        elif isinstance(node, ast.Call) and makes_a_verb(node.func):
            for given in map(ast.unparse, node.args):
                first, *rest = given.split(".")
                yield ".".join([imported.get(first, f"{_module(path)}.{first}"), *rest])


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _module(path: Path) -> str:
    """Return the dotted name of a module, starting at our package."""
    parts = path.with_suffix("").parts
    ours = [place for place, part in enumerate(parts) if part.startswith("greensched_")]
    return ".".join(parts[ours[0] if ours else -1 :])
