"""Loads the compiled library of this processor and calls its functions.

    python -m greensched_policies.library.loading [PROCESSOR]

checks that a wheel or an image has it. In a checkout it is compiled on first use, and again if
the sources have changed. Imports no compiler.
"""

import ctypes
import fcntl
import hashlib
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.errors import BadInput
from greensched_policies.library.functions import FASTER_WHEN_NEWER, FUNCTIONS
from greensched_policies.library.sources import sources_of

BUILT = Path(__file__).parents[1] / "kernel" / "built"
PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}  # by the names in TARGETARCH of images


class NewerCpu(NamedTuple):
    """A level of a processor that most have, and that is not asked of all."""

    cpu: str  # as LLVM names it
    flags: frozenset[str]  # by which Linux says that this one has it


NEWER = {"x86_64": NewerCpu("x86-64-v3", frozenset("abm avx2 bmi1 bmi2 f16c fma movbe".split()))}
_CPU_FLAGS = Path("/proc/cpuinfo")
_BUILD = "greensched_policies.kernel.build"
_UNLINKED = "greensched_policies.kernel.unlinked"

# The head of an ELF file of 64 bits: e_machine, e_shoff, e_shentsize and e_shnum of it are read.
_ELF_HEAD = struct.Struct("<4s14xH20xQ10x2H2x")
_ELF_MACHINES = {"x86_64": 62, "aarch64": 183}

_UNREAD = ctypes.c_void_p(), ctypes.c_void_p()  # for results and exceptions of numba's convention

# A function of the library: whole numbers and numbers, packed -> 0, or a fault.
Function = Callable[[bytes, bytes], int]


def is_loadable() -> bool:
    """Return whether the library is there, so that nothing needs to be compiled."""
    return _found() is not None


def load() -> None:
    """Load the library, so that a process without one ends when it starts.

    Raises BadInput if there is none for this processor and none can be made.
    """
    _loaded()


def call(name: str, integers: Sequence[int], numbers: Sequence[float]) -> None:
    """Call a function of the library, loaded if need be; other threads run while it does."""
    whole = struct.pack(f"{len(integers)}q", *integers)
    if _function(name)(whole, struct.pack(f"{len(numbers)}d", *numbers)):
        raise MemoryError(
            f"the compiled function {name} failed; most likely there is not enough memory"
        )


def address_of(array: npt.NDArray[Any], dtype: npt.DTypeLike = np.float64) -> int:
    """Return the address of an array, which must outlive the call.

    Raises TypeError for one of another type, or not in C order.
    """
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"an array of {array.dtype} that is not {np.dtype(dtype)} in C order")
    if array.size and array.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))  # three times as fast
    return int(array.ctypes.data)


def name_for_newer(name: str, processor: str) -> str:
    """Return the name of a function for the newer processors of a kind."""
    return f"{name}_{NEWER[processor].cpu.replace('-', '_')}"


def best_name(name: str, processor: str, flags: frozenset[str]) -> str:
    """Return the name of the fastest version of a function for a processor with some flags."""
    is_newer = processor in NEWER and NEWER[processor].flags <= flags
    return name_for_newer(name, processor) if name in FASTER_WHEN_NEWER and is_newer else name


def cpu_flags(path: Path = _CPU_FLAGS) -> frozenset[str]:
    """Return what Linux says that this machine's processor can do; nothing if it does not say."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return frozenset()
    found = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(found.partition(":")[2].split())


def processor_named(name: str) -> str:
    """Return the processor of a name such as arm64 or aarch64; an empty name is this machine's."""
    return PROCESSORS.get(name, name) or platform.machine()


def file_name(processor: str) -> str:
    """Return the name of the library of a processor, which changes with the sources."""
    return f"{_sources_digest()}-{processor}.so"


def refuse_missing(processor: str, folder: Path = BUILT) -> None:
    """Raise BadInput if the library of a processor is not complete in a folder.

    Its functions are looked up only if the processor is this machine's.
    """
    path = folder / file_name(processor)
    if not path.exists():
        found = ", ".join(sorted(each.name for each in folder.glob("*"))) or "nothing"
        raise BadInput(f"{path} is missing, and there is {found}: {_BUILD} makes it")
    refuse_unusable(path, processor)
    if processor == platform.machine():
        library, newer = ctypes.CDLL(str(path)), FASTER_WHEN_NEWER if processor in NEWER else ()
        names = [*FUNCTIONS, *(name_for_newer(name, processor) for name in newer)]
        if absent := [name for name in names if not hasattr(library, name)]:
            raise BadInput(f"{path} has no function {', '.join(absent)}")


def refuse_unusable(path: Path, processor: str) -> None:
    """Raise BadInput if a file is no whole library or object file for a processor.

    A library that is cut short would end the process when it is loaded or called, without a word.
    """
    with path.open("rb") as file:
        head = file.read(_ELF_HEAD.size)
    fault, size = "is no library", path.stat().st_size
    if len(head) == _ELF_HEAD.size and head.startswith(b"\x7fELF"):
        _, machine, sections_at, section_size, sections = _ELF_HEAD.unpack(head)
        fault = "" if machine == _ELF_MACHINES.get(processor) else f"is not for {processor}"
        if not fault and size < sections_at + section_size * sections:  # they come last
            fault = f"is cut short, to {size} bytes"
    if fault:
        raise BadInput(
            f"{path} {fault}: install greensched again; in a checkout delete the file, and it is "
            "compiled again"
        )


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sources_of(_BUILD):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def function_for(name: str, flags: frozenset[str]) -> Function:
    """Return a function of the library, loaded if need be, for a processor with some flags."""
    code = _loaded()(best_name(name, platform.machine(), flags))
    code.restype = ctypes.c_int32
    code.argtypes = [ctypes.c_void_p] * 4
    nothing, fault = (ctypes.addressof(each) for each in _UNREAD)
    function: Function = partial(code, nothing, fault)
    return function


@cache
def _function(name: str) -> Function:
    return function_for(name, cpu_flags())


@cache
def _loaded() -> Callable[[str], Any]:
    """Return what gives a function of the library by its name."""
    path = _found() or _made()
    refuse_unusable(path, platform.machine())
    if path.suffix == ".so":
        return ctypes.CDLL(str(path)).__getitem__
    function_named: Callable[[str], Any] = import_module(_UNLINKED).functions_of(path)
    return function_named


def _found() -> Path | None:
    """Return the library, or the object file that is made where there is no linker, if any."""
    name = file_name(platform.machine())
    folders = (BUILT, _folder()) if find_spec("numba") else (BUILT,)
    places = [folder / name for folder in folders]
    places += [place.with_suffix(".o") for place in places]
    return next((place for place in places if place.exists()), None)


def _made() -> Path:
    """Compile the library, once for all processes, and return it; raise BadInput without numba."""
    name = file_name(platform.machine())
    if find_spec("numba") is None:
        raise BadInput(
            f"{BUILT / name} is missing: this installation was made for another processor than "
            f"{platform.machine()}, or not completely. Install it again, or install "
            "greensched[simulator], with which it is compiled on first use"
        )
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (made := _found()) is not None:
            return made
        command = [sys.executable, "-m", _BUILD, "--folder", str(folder), "--or-object"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BadInput(f"{' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
        for other in folder.glob("*-*.*"):
            if other.stem != Path(name).stem:
                other.unlink()  # of sources that have changed; who has loaded it keeps it
        return Path(done.stdout.strip())


def _folder() -> Path:
    """Return where the library is kept: in the checkout, or where none can be written, a cache."""
    if os.access(BUILT.parent, os.W_OK):
        return BUILT
    from platformdirs import user_cache_path  # comes with numba, in the extra `simulator`

    return user_cache_path("greensched") / "kernel"


if __name__ == "__main__":
    try:
        refuse_missing(processor_named("".join(sys.argv[1:])))
    except BadInput as fault:
        raise SystemExit(str(fault)) from fault
