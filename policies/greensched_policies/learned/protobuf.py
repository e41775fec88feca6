"""Reads the protobuf wire format, as far as ONNX files use it.

Only varint, 64-bit, length-delimited and 32-bit fields exist in onnx.proto3 of IR version 10.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Field = tuple[int, int, "int | memoryview"]  # number, wire type, value


class NotOnnx(ValueError):
    """The bytes are not an ONNX model: truncated, or in another format."""


def text_of(message: memoryview, wanted: int) -> str:
    """Return the first text of a field; "" if there is none."""
    return next(texts_of(message, wanted), "")


def texts_of(message: memoryview, wanted: int) -> Iterator[str]:
    """Yield all texts of a field."""
    for number, wire, value in message_fields(message):
        if number == wanted:
            yield bytes(message_of(wire, value)).decode(errors="replace")


def reals_of(chunk: memoryview, kind: str, where: str) -> npt.NDArray[np.floating]:
    """Return bytes as numbers of a type; raises NotOnnx if they are no whole number of them."""
    dtype = np.dtype(kind)
    if len(chunk) % dtype.itemsize:
        raise NotOnnx(f"{where} holds a broken number of bytes")
    return np.frombuffer(chunk, dtype=dtype)


def whole_numbers(wire: int, value: int | memoryview) -> Iterator[int]:
    """Yield the whole numbers of a field, packed or a single one; negative ones as ONNX does."""
    if isinstance(value, int):
        yield _signed(value)
        return
    packed, at = message_of(wire, value), 0
    while at < len(packed):
        number, at = _varint(packed, at)
        yield _signed(number)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def message_of(wire: int, value: int | memoryview) -> memoryview:
    """Return the bytes of a field; raises NotOnnx for a field of another type."""
    if wire != BYTES or isinstance(value, int):
        raise NotOnnx("a field of bytes has another type")
    return value


def bytes_or_word(value: int | memoryview) -> memoryview:
    """Return the bytes of one real number or of packed ones; raises NotOnnx for other fields."""
    if isinstance(value, int):
        raise NotOnnx("a field of real numbers has another type")
    return value


def message_fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of one protobuf message; raises NotOnnx where it does not parse."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            whole, at = _varint(message, at)
            yield number, wire, whole
            continue
        if wire == BYTES:
            size, at = _varint(message, at)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise NotOnnx(f"unknown wire type {wire}")
        if number == 0 or at + size > end:
            raise NotOnnx("the file is cut off or is not protobuf")
        yield number, wire, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise NotOnnx("the file is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotOnnx("a number is too long")
