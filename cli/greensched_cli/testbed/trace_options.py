"""Options of the verbs that draw pods from a trace, those of the trace formats among them."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, Literal

import typer

from greensched_simulator.formats.trace_format import FormatOption
from greensched_simulator.formats.traces import TRACE_OPTIONS

Pods = Annotated[int, typer.Option(min=2, help="Number of pods to draw from the trace.")]
SkipFaulty = Annotated[
    bool, typer.Option(help="Leave out faulty rows instead of refusing the trace.")
]
_VALUES = "trace_options"  # the verb's parameter that takes the values


def with_trace_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of all trace formats; it takes their values as `trace_options`.

    The verb raises BadInput for a text that an option cannot read.
    """
    by_name = {option.name: option for option in TRACE_OPTIONS}

    @wraps(verb)
    def with_values(**given: Any) -> None:
        others = {name: value for name, value in given.items() if name not in by_name}
        texts = {name: given[name] for name in by_name if given.get(name) is not None}
        values = {name: by_name[name].parse(text) for name, text in texts.items()}
        verb(**others, **{_VALUES: values})

    own = signature(verb)
    kept = [each for name, each in own.parameters.items() if name != _VALUES]
    added = [_parameter(option) for option in TRACE_OPTIONS]
    with_values.__signature__ = own.replace(  # type: ignore[attr-defined]  # typer reads it
        parameters=[*kept, *added]
    )
    return with_values


def _parameter(option: FormatOption) -> Parameter:
    kind: Any = Literal.__getitem__(option.choices) if option.choices else str
    about = option.about if option.choices else f"{option.about} Such as {option.example}."
    annotation = Annotated[kind | None, typer.Option(help=about)]
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
