"""What numba's code needs of numba at run time, for a library that runs without it.

Memory comes from the C library. References to arrays are counted without the instructions that make
this safe among threads: no second thread sees an array that the library makes. An exception is a
status that the function returns; its text is lost.
"""

import re
from typing import Any

from numba import types
from numba.np.numpy_support import carray

NEW_STRIDES = "new_strides"
_INTEGERS = types.CPointer(types.int64)
NEW_STRIDES_TYPES = (types.int64, _INTEGERS, _INTEGERS, types.int64, _INTEGERS, _INTEGERS,
                     types.int64)  # fmt: skip
_COUNTED = re.compile(r"^define [^\n]*@(NRT_(?:incref|decref))\(.*?^}\n", re.MULTILINE | re.DOTALL)
# What numba keeps of exceptions: their texts, and the paths of sources on the machine that builds.
_EXCEPTION = re.compile(r'^(@\.const\.pickledata[^\n]*?\[\d+ x i8\]) c"[^"\n]*"', re.MULTILINE)


def without_numba(code: str) -> str:
    """Return LLVM's code without numba's counting of references and texts of exceptions."""
    counted = _COUNTED.sub(r"declare void @\1(ptr)\n", code)
    return _EXCEPTION.sub(r"\1 zeroinitializer", counted)


def new_strides(
    ndim: Any,
    shape_at: Any,
    strides_at: Any,
    new_ndim: Any,
    new_shape_at: Any,
    new_strides_at: Any,
    itemsize: Any,
) -> int:
    """Write the strides of an array in C order in another shape; return 0 for any other array."""
    shape, strides = carray(shape_at, (ndim,)), carray(strides_at, (ndim,))
    step = itemsize
    for back in range(ndim):
        place = ndim - 1 - back
        if shape[place] != 1 and strides[place] != step:
            return 0
        step *= shape[place]
    new_shape, found = carray(new_shape_at, (new_ndim,)), carray(new_strides_at, (new_ndim,))
    step = itemsize
    for back in range(new_ndim):
        place = new_ndim - 1 - back
        found[place] = step
        step *= new_shape[place]
    return 1


# Layout of MemInfo: numba's core/runtime/nrt.cpp.
RUNTIME_IR = """
%MemInfo = type { i64, ptr, ptr, ptr, i64, ptr }
declare ptr @malloc(i64)
declare void @free(ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %step = zext i32 %align to i64
  %more = add i64 %step, 48
  %whole = add i64 %size, %more
  %info = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %info, null
  br i1 %failed, label %end, label %fill
fill:
  %begin = ptrtoint ptr %info to i64
  %room = add i64 %begin, 47
  %past = add i64 %room, %step
  %mask = sub i64 0, %step
  %aligned = and i64 %past, %mask
  %data = inttoptr i64 %aligned to ptr
  store %MemInfo { i64 1, ptr null, ptr null, ptr null, i64 0, ptr null }, ptr %info
  %data_field = getelementptr %MemInfo, ptr %info, i32 0, i32 3
  store ptr %data, ptr %data_field
  br label %end
end:
  ret ptr %info
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %info = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %info
}

define ptr @NRT_Allocate(i64 %size) {
  %data = call ptr @malloc(i64 %size)
  ret ptr %data
}

define void @NRT_Free(ptr %data) {
  call void @free(ptr %data)
  ret void
}

@PyExc_RuntimeError = global i8 0
define void @PyErr_SetString(ptr %kind, ptr %text) {
  ret void
}

define ptr @NRT_MemInfo_new_varsize_dtor(i64 %size, ptr %of_elements) {
  %info = call ptr @malloc(i64 48)
  %failed = icmp eq ptr %info, null
  br i1 %failed, label %end, label %fill
fill:
  %data = call ptr @malloc(i64 %size)
  store %MemInfo { i64 1, ptr @free, ptr null, ptr null, i64 0, ptr null }, ptr %info
  %elements_field = getelementptr %MemInfo, ptr %info, i32 0, i32 2
  store ptr %of_elements, ptr %elements_field
  %data_field = getelementptr %MemInfo, ptr %info, i32 0, i32 3
  store ptr %data, ptr %data_field
  %failed_too = icmp eq ptr %data, null
  br i1 %failed_too, label %undo, label %end
undo:
  call void @free(ptr %info)
  br label %end
end:
  %found = phi ptr [ null, %0 ], [ %info, %fill ], [ null, %undo ]
  ret ptr %found
}

define ptr @NRT_MemInfo_varsize_realloc(ptr %info, i64 %size) {
  %data_field = getelementptr %MemInfo, ptr %info, i32 0, i32 3
  %before = load ptr, ptr %data_field
  %data = call ptr @realloc(ptr %before, i64 %size)
  store ptr %data, ptr %data_field
  ret ptr %data
}
declare ptr @realloc(ptr, i64)

define void @NRT_MemInfo_call_dtor(ptr %info) {
  %dtor_field = getelementptr %MemInfo, ptr %info, i32 0, i32 1
  %dtor = load ptr, ptr %dtor_field
  %is_array = icmp eq ptr %dtor, null
  br i1 %is_array, label %end, label %list
list:
  %elements_field = getelementptr %MemInfo, ptr %info, i32 0, i32 2
  %of_elements = load ptr, ptr %elements_field
  %data_field = getelementptr %MemInfo, ptr %info, i32 0, i32 3
  %data = load ptr, ptr %data_field
  %plain = icmp eq ptr %of_elements, null
  br i1 %plain, label %free, label %each
each:
  call void %of_elements(ptr %data)
  br label %free
free:
  call void @free(ptr %data)
  br label %end
end:
  call void @free(ptr %info)
  ret void
}

define void @NRT_incref(ptr %info) {
  %none = icmp eq ptr %info, null
  br i1 %none, label %end, label %count
count:
  %before = load i64, ptr %info
  %after = add i64 %before, 1
  store i64 %after, ptr %info
  br label %end
end:
  ret void
}

define void @NRT_decref(ptr %info) {
  %none = icmp eq ptr %info, null
  br i1 %none, label %end, label %count
count:
  %before = load i64, ptr %info
  %after = sub i64 %before, 1
  store i64 %after, ptr %info
  %last = icmp eq i64 %after, 0
  br i1 %last, label %free, label %end
free:
  call void @NRT_MemInfo_call_dtor(ptr %info)
  br label %end
end:
  ret void
}

define i32 @numba_attempt_nocopy_reshape(i64 %ndim, ptr %shape, ptr %strides, i64 %new_ndim,
    ptr %new_shape, ptr %new_strides, i64 %itemsize, i32 %is_f_order) {
  %result = alloca i64
  %fault = alloca ptr
  %status = call i32 @new_strides(ptr %result, ptr %fault, i64 %ndim, ptr %shape, ptr %strides,
    i64 %new_ndim, ptr %new_shape, ptr %new_strides, i64 %itemsize)
  %found = load i64, ptr %result
  %answer = trunc i64 %found to i32
  ret i32 %answer
}
declare i32 @new_strides(ptr, ptr, i64, ptr, ptr, i64, ptr, ptr, i64)
"""
