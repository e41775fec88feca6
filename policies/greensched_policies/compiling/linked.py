"""Makes numba compile functions as parts of their callers, and optimise the whole once.

numba makes machine code of each function with all its callees, and again for its caller: for the
engine, ten times as much code as ever runs. Here, functions called by compiled code are only
linked. A function called by Python is optimised as one with all its callees: single-use functions
are inlined, and unread arguments are not passed.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class _NoMachineCode:
    """Code generator of a part, which has no machine code and so no environment."""

    @staticmethod
    def set_env(name: str, env: Any) -> None:
        """Do nothing: `_WholeCompiler` sets it."""


class _PartLibrary(JITCodeLibrary):
    """Code to be linked into its callers; it gets no machine code of its own."""

    codegen = _NoMachineCode

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: the function has no address."""
        return 0

    def _optimize_final_module(self) -> None:
        """Do nothing: the whole is optimised instead."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _WholeLibrary(JITCodeLibrary):
    """Code with all its parts; as nothing else calls these, their calls can be made cheap."""

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
        """Compile a function, and set the environments of its parts, as numba's cache does."""
        done = super().compile_extra(function)
        for each in done._find_referenced_environments():
            done.library.codegen.set_env(each.env_name, each)
        return done


class _PortableLibrary(_WholeLibrary):
    """Code that is kept as it is before it is optimised for this processor."""

    portable = ""

    def _optimize_final_module(self) -> None:
        self.portable = str(self._final_module)
        super()._optimize_final_module()


class _PortableCompiler(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        whole = library or _PortableLibrary(target.codegen(), "portable")
        super().__init__(typing, target, whole, *rest)


class Linked:
    """A function that is compiled when Python first calls it; compiled callers link it instead."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.whole = njit(cache=True, pipeline_class=_WholeCompiler, **options)(function)
        without = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        self._part = njit(pipeline_class=_PartCompiler, **(options | without))(function)

    def __call__(self, *given: Any) -> Any:
        """Call the compiled function from Python."""
        return self.whole(*given)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self._part)


def portable_code(function: Linked, signature: tuple[Any, ...]) -> tuple[str, str]:
    """Return LLVM's code of a function with all that it calls, for any processor, and its name.

    `signature` are numba's types of its arguments.
    """
    options = function.options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    whole = njit(pipeline_class=_PortableCompiler, **options)(function.py_func)
    whole.compile(signature)
    done = whole.overloads[signature]
    return done.library.portable, done.fndesc.llvm_func_name
