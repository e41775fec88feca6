"""Loads the functions of an object file, in a checkout on a machine without a linker."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm


def functions_of(path: Path) -> Callable[[str], Any]:
    """Return what gives a function of an object file by its name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(str(path))
    engine.finalize_object()

    def function_named(name: str) -> Any:
        arguments = [ctypes.c_void_p] * 4
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *arguments)(engine.get_function_address(name))
        function.__dict__["engine"] = engine  # the code lives as long as the engine
        return function

    return function_named
