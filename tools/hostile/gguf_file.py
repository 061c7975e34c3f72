"""GGUF as a tree that can be written wrong: every count, length, type and offset can be replaced before writing.

Written from the format's description alone, independent of the program under test.
"""
import struct
from dataclasses import dataclass, field

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
SCALARS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q",
           F64: "<d"}
TENSOR_F32, TENSOR_F16, TENSOR_Q8_0 = 0, 1, 8
ALIGNMENT = 32


class Raw(bytes):
    """Bytes that stand where a value should, written as they are."""


def text(value):
    """A string as the file has it."""
    value = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(value)) + value


def payload(kind, value):
    """A metadata value without its type."""
    if isinstance(value, Raw):
        return bytes(value)
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        inner, items = value
        if inner in SCALARS:
            body = struct.pack(f"<{len(items)}{SCALARS[inner][1]}", *items)
        else:
            body = b"".join(payload(inner, item) for item in items)
        return struct.pack("<IQ", inner, len(items)) + body
    return struct.pack(SCALARS[kind], value)


@dataclass
class Tensor:
    """A tensor; `offset` and `dims_written` replace what would follow from the data."""
    name: str
    dims: list
    kind: int
    data: bytes
    offset: int | None = None
    rank: int | None = None


@dataclass
class File:
    """A whole file; `counts` replaces (tensors, keys)."""
    keys: list
    tensors: list
    version: int = 3
    magic: bytes = b"GGUF"
    counts: tuple = (None, None)
    alignment: int = ALIGNMENT
    gap: bytes = field(default=b"")

    def get(self, name):
        return next((value for key, _, value in self.keys if key == name), None)

    def place(self, name):
        """Index of a key."""
        return next(i for i, key in enumerate(self.keys) if key[0] == name)

    def set(self, name, kind, value):
        self.keys[self.place(name)] = (name, kind, value)

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def header(self):
        """All bytes before the data, without padding."""
        tensors, keys = self.counts
        out = [self.magic, struct.pack("<IQQ", self.version, len(self.tensors) if tensors is None else tensors,
                                       len(self.keys) if keys is None else keys)]
        for name, kind, value in self.keys:
            out.append(text(name) + struct.pack("<I", kind) + payload(kind, value))
        at = 0
        for t in self.tensors:
            rank = len(t.dims) if t.rank is None else t.rank
            offset = at if t.offset is None else t.offset
            dims = struct.pack(f"<{len(t.dims)}Q", *[d % 2**64 for d in t.dims])
            out.append(text(t.name) + struct.pack("<I", rank) + dims + struct.pack("<IQ", t.kind, offset % 2**64))
            at += -(-len(t.data) // ALIGNMENT) * ALIGNMENT
        return b"".join(out)

    def encode(self):
        out = [self.header()]
        out.append(b"\0" * (-len(out[0]) % self.alignment) + self.gap)
        for t in self.tensors:
            out.append(t.data + b"\0" * (-len(t.data) % ALIGNMENT))
        return b"".join(out)


def q8_0(values):
    """Numbers in blocks of 32: a 16-bit scale, then 8-bit integers."""
    out = []
    for start in range(0, len(values), 32):
        block = values[start:start + 32]
        scale = max(abs(v) for v in block) / 127 or 1.0
        out.append(struct.pack("<e32b", scale, *[max(-127, min(127, round(v / scale))) for v in block]))
    return b"".join(out)
