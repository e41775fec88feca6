"""Functions that numba compiles as parts of their callers: optimised once, with the whole.

numba makes machine code of each function with all that it calls, and then of its caller, again with
all that: of the engine ten times as much code as ever runs. Here what compiled code calls is only
linked, and what Python calls is optimised and made, as one: who has a single caller becomes a part
of it, and arguments that nobody reads are not handed over.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoMachineCode:
    """What has no machine code has no place for what it is run with."""

    @staticmethod
    def set_env(name: str, env: Any) -> None:
        """Do nothing: `_WholeCompiler` sees to it."""


class _PartLibrary(JITCodeLibrary):
    """Code to be linked into its callers'; no machine code is made of it by itself."""

    codegen = _NoMachineCode

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no such function."""
        return 0

    def _optimize_final_module(self) -> None:
        """Leave it to the whole."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _WholeLibrary(JITCodeLibrary):
    """Code with all its parts, which nothing else calls: handing over can be made cheap."""

    def _optimize_final_module(self) -> None:
        for each in self._final_module.functions:
            if not each.is_declaration and each.linkage.name == "linkonce_odr":
                each.linkage = "internal"
        super()._optimize_final_module()


class _PartCompiler(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or _PartLibrary(target.codegen(), "part"), *rest)


class _WholeCompiler(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        whole = library or _WholeLibrary(target.codegen(), "whole")
        whole.enable_object_caching()
        super().__init__(typing, target, whole, *rest)

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, and tell its parts what they are run with, as a cache does."""
        done = super().compile_extra(function)
        for each in done._find_referenced_environments():
            done.library.codegen.set_env(each.env_name, each)
        return done


class Linked:
    """A function compiled when Python first calls it, and a part of what calls it compiled."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.whole = njit(cache=True, pipeline_class=_WholeCompiler, **options)(function)
        without = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        self._part = njit(pipeline_class=_PartCompiler, **(options | without))(function)

    def __call__(self, *given: Any) -> Any:
        """Call it from Python."""
        return self.whole(*given)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._part)
