"""Compiles the functions of `entries.py` into a shared library for each kind of processor.

    python -m greensched_policies.kernel.build [--processor x86_64 aarch64] [--folder FOLDER]

Needs numba, and to link a library, `ld` or the package ziglang. numba makes the code that is not
specific to a processor; LLVM compiles it for any. The result needs the C library alone, and runs
with any Python. The same sources, numba and Python give the same bytes, in any folder. It runs on
every processor of its kind; what a newer one does much faster is in it a second time.
"""

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import llvmlite.binding as llvm
from numba import types

from greensched_core.errors import BadInput
from greensched_policies.compiling.compiled import fast
from greensched_policies.compiling.linked import Linked, portable_code
from greensched_policies.kernel.entries import ENTRIES, Entry
from greensched_policies.kernel.runtime import (
    NEW_STRIDES,
    NEW_STRIDES_TYPES,
    RUNTIME_IR,
    new_strides,
    without_numba,
)
from greensched_policies.library.functions import FASTER_WHEN_NEWER
from greensched_policies.library.loading import (
    BUILT,
    NEWER,
    file_name,
    name_for_newer,
    processor_named,
)

# What each processor must have: every one of its kind does.
_CPUS = {"x86_64": "x86-64", "aarch64": "generic"}
# The addresses of whole numbers and of numbers.
_TYPES = types.CPointer(types.int64), types.CPointer(types.float64)
_HEAD_OF_FUNCTION = re.compile(r"^(define [^\n]*) \{$", re.MULTILINE)
# Functions of the C library.
_OF_C = {"malloc", "realloc", "free", "memset", "memcpy", "memmove", "pow", "exp", "log", "log1p",
         "erfc", "log10", "sin", "cos", "sqrtf", "ceil", "floor", "rint"}  # fmt: skip


def object_code(processor: str, entries: Mapping[str, Entry] = ENTRIES) -> bytes:
    """Return functions as an object file for a processor.

    Raises BadInput for an unknown processor, and for functions that need more than the C library.
    """
    if processor not in _CPUS:
        raise BadInput(f"the processor {processor} is unknown: use one of {', '.join(_CPUS)}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = _machine(processor, _CPUS[processor])
    whole = _optimised(entries, machine)
    newer = {
        name_for_newer(name, processor): entries[name]
        for name in FASTER_WHEN_NEWER
        if processor in NEWER and name in entries
    }
    if newer:
        cpu = NEWER[processor].cpu
        code = str(_optimised(newer, _machine(processor, cpu)))
        marked = _HEAD_OF_FUNCTION.sub(rf'\1 "target-cpu"="{cpu}" {{', code)
        whole.link_in(llvm.parse_assembly(marked))
    _number_parts(whole)
    return bytes(machine.emit_object(whole))


def _machine(processor: str, cpu: str) -> Any:
    target = llvm.Target.from_triple(f"{processor}-unknown-linux-gnu")
    return target.create_target_machine(cpu=cpu, opt=3, reloc="pic", codemodel="default")


def _optimised(entries: Mapping[str, Entry], machine: Any) -> Any:
    """Return a module of functions and all that they need, optimised for a machine."""
    whole = llvm.parse_assembly(RUNTIME_IR)
    whole.link_in(_portable_code(NEW_STRIDES, new_strides, NEW_STRIDES_TYPES))
    for name, entry in entries.items():
        whole.link_in(_portable_code(name, entry, _TYPES))
    whole.triple, whole.data_layout = machine.triple, str(machine.target_data)
    for each in (*whole.functions, *whole.global_variables):
        if not each.is_declaration and each.name not in entries:
            each.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(whole, passes)
    _refuse_python(whole)
    return whole


def _portable_code(name: str, function: Callable[..., Any], signature: tuple[Any, ...]) -> Any:
    """Return LLVM's code of a function and all that it calls, before it is optimised."""
    code, own_name = portable_code(cast(Linked, fast(function)), signature)
    module = llvm.parse_assembly(without_numba(code))
    module.get_function(own_name).name = name
    return module


def _number_parts(module: Any) -> None:
    """Rename what is not offered: numba's names have addresses and counters of this process."""
    for number, each in enumerate((*module.functions, *module.global_variables)):
        if each.linkage.name in ("internal", "private"):
            each.name = f"part{number}"


def _refuse_python(module: Any) -> None:
    """Raise BadInput if code needs more than the C library: it could not be loaded elsewhere."""
    needed = {each.name for each in module.functions if each.is_declaration}
    strange = {each for each in needed - _OF_C if not each.startswith("llvm.")}
    if strange:
        names = ", ".join(sorted(strange))
        raise BadInput(
            f"the compiled functions need {names}, which the C library does not have: use plain "
            "loops, or simpler functions of numpy"
        )


def link(code: bytes, processor: str, path: Path) -> bool:
    """Write a shared library of object code to `path`; return whether there is a linker."""
    linker = _linker(processor)
    if not linker:
        return False
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, library = Path(folder, "kernel.o"), Path(folder, path.name)
        source.write_bytes(code)
        options = ["-shared", "--gc-sections", "--strip-all", "--build-id=none"]
        options += ["-z", "noexecstack", "-z", "relro"]
        subprocess.run([*linker, *options, "-o", library, source], check=True)
        library.replace(path)
    return True


def _linker(processor: str) -> list[str]:
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    own = shutil.which("ld") if processor == platform.machine() else None
    return [own] if own else []


def main() -> None:
    """Build the libraries of the arguments and print their paths."""
    arguments = argparse.ArgumentParser(prog="python -m greensched_policies.kernel.build")
    which = "x86_64, aarch64, or as in TARGETARCH; without it, or empty: this machine's"
    arguments.add_argument(
        "--processor", nargs="+", type=processor_named, choices=sorted(_CPUS), help=which,
        default=[platform.machine()],
    )  # fmt: skip
    arguments.add_argument("--folder", type=Path, default=BUILT)
    or_object = "write an object file, without a linker, instead of nothing"
    arguments.add_argument("--or-object", action="store_true", help=or_object)
    chosen = arguments.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for processor in chosen.processor:
        path = chosen.folder / file_name(processor)
        code = object_code(processor)
        if not link(code, processor, path):
            if not chosen.or_object:
                raise SystemExit(
                    f"no linker for {processor}: install ziglang, or binutils on such a machine"
                )
            path = path.with_suffix(".o")
            path.write_bytes(code)
        print(path)


if __name__ == "__main__":
    main()
