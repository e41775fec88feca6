"""Lends a structure to compiled code, which counts no references to it, nor to its arrays.

Each count is an atomic operation, and a cluster, its jobs and their record are a hundred arrays.
The lender must keep the structure, which keeps its arrays, alive while they are used. Functions
that count no references can read the fields of lent structures only.
"""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
)


def _unowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the arrays, or tuples of arrays, without owners, so that no references are counted."""
    if isinstance(kind, types.Array):
        model = context.data_model_manager[kind]
        for owner in map(model.get_field_position, ("meminfo", "parent")):
            null = builder.extract_value(value, owner).type(None)
            value = builder.insert_value(value, null, owner)
        return value
    for place, each in enumerate(getattr(kind, "types", ())):  # of a tuple
        part = _unowned(context, builder, each, builder.extract_value(value, place))
        value = builder.insert_value(value, part, place)
    return value


class _LentStructure(types.Type):
    """The address of a structure's fields."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        super().__init__(f"lent({structure.name})")

    @property
    def key(self) -> Any:
        """Return what distinguishes the type from others."""
        return self.structure


@register_model(_LentStructure)
class _LentModel(models.OpaqueModel):
    """An address."""


@infer_getattr
class _LentFields(AttributeTemplate):
    key = _LentStructure

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]  # it is none
        """Return the type of a field."""
        return kind.structure.field_dict.get(name)


def _field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    payload = kind.structure.get_data_type()
    held = context.data_model_manager[payload].get_value_type()
    fields = cgutils.create_struct_proxy(payload)(
        context, builder, ref=builder.bitcast(value, held.as_pointer())
    )
    of = kind.structure.field_dict[name]
    found = _unowned(context, builder, of, getattr(fields, name))
    return impl_ret_borrowed(context, builder, of, found)  # counts references to lists


lower_getattr_generic(_LentStructure)(_field)


def _lend_structure(_context: Any, structure: Any) -> Any:
    """Return the type and code that lend a structure; the caller keeps it alive."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held = context.make_helper(builder, signature.args[0], args[0])
        return context.nrt.meminfo_data(builder, held.meminfo)

    return _LentStructure(structure)(structure), code


lent_structure: Any = intrinsic(_lend_structure)
