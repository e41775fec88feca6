"""Options of the verbs that draw pods from a trace."""

from typing import Annotated

import typer

from greensched_simulator.formats.trace_format import TimeUnit

Pods = Annotated[int, typer.Option(min=2, help="Number of pods to draw from the trace.")]
TimesIn = Annotated[TimeUnit | None, typer.Option(help="Unit of times in a GAIA trace: s or h.")]
LargestMachine = Annotated[
    str | None,
    typer.Option(help="Largest machine of a Google trace: CORES,MEMORY, such as 64,256Gi."),
]
SkipFaulty = Annotated[
    bool, typer.Option(help="Leave out faulty rows instead of refusing the trace.")
]
