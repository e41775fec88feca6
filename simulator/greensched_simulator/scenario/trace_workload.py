"""Jobs from a published trace: its file, and the options of its format."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from greensched_simulator.formats.google_events import LARGEST_MACHINE, CellMachine
from greensched_simulator.formats.trace_format import FormatOption, TraceOptions
from greensched_simulator.formats.traces import TRACE_OPTIONS
from greensched_simulator.scenario.fields import (
    Bytes,
    Cores,
    InputFile,
    ScenarioPart,
    parsed_text,
)


class LargestMachine(ScenarioPart):
    """The largest machine of the cell in which Google recorded its trace."""

    cpu_cores: Cores = Field(description="CPU cores in a CPU request of 1.")
    memory: Bytes = Field(description="Memory in a memory request of 1.")

    def machine(self) -> CellMachine:
        """Return the machine as the trace's reader takes it."""
        return CellMachine(self.cpu_cores, self.memory)


class _TraceFile(ScenarioPart):
    file: InputFile = Field(description="Trace in one of the formats of docs/traces.md.")


_AS_MAP = {LARGEST_MACHINE.name: LargestMachine}  # options that a scenario writes as a map


def _kind_of(option: FormatOption) -> Any:
    """Return the type of an option's field: a map, a choice, or text as on the command line."""
    if option.choices:
        return Annotated[Literal.__getitem__(option.choices), AfterValidator(option.parse)]
    return _AS_MAP.get(option.name) or parsed_text(option.parse, option.example)


_option_fields: Any = {
    each.name: (_kind_of(each) | None, Field(default=None, description=each.about))
    for each in TRACE_OPTIONS
}
_FileAndOptions: Any = create_model("_FileAndOptions", __base__=_TraceFile, **_option_fields)


class TraceWorkload(_FileAndOptions):  # type: ignore[misc]  # made of the formats' options
    """Jobs from a published trace."""

    skip_faulty: bool = Field(
        default=False, description="Leave out and report faulty rows instead of refusing the trace."
    )
    first: int | None = Field(default=None, ge=1, description="Use only this many, the earliest.")
    sample: int | None = Field(default=None, ge=1, description="Draw this many, by the seed.")
    repeat: int = Field(
        default=1, ge=1, le=1000, description="Play the trace this many times in a row."
    )

    def options(self) -> TraceOptions:
        """Return the options that are given, as the trace's reader takes them."""
        given = {each.name: getattr(self, each.name) for each in TRACE_OPTIONS}
        return {
            name: value.machine() if isinstance(value, LargestMachine) else value
            for name, value in given.items()
            if value is not None
        }
