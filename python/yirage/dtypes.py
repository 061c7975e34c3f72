"""Types of elements, by the names of NumPy and PyTorch."""

import enum


class dtype(str, enum.Enum):  # noqa: N801 - as NumPy and PyTorch call it
    """A type of elements. Graphs compute with float32, float16 and bfloat16; the others are refused where they are used."""

    int8 = "int8"
    int16 = "int16"
    int32 = "int32"
    int64 = "int64"
    uint8 = "uint8"
    uint16 = "uint16"
    uint32 = "uint32"
    uint64 = "uint64"
    fp8 = "fp8"
    fp8_e4m3 = "fp8_e4m3"
    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"
    float64 = "float64"

    def __str__(self) -> str:
        return self.value


int8 = dtype.int8
int16 = dtype.int16
int32 = dtype.int32
int64 = dtype.int64
uint8 = dtype.uint8
uint16 = dtype.uint16
uint32 = dtype.uint32
uint64 = dtype.uint64
fp8 = dtype.fp8
fp8_e4m3 = dtype.fp8_e4m3
float16 = dtype.float16
bfloat16 = dtype.bfloat16
float32 = dtype.float32
float64 = dtype.float64

__all__ = [
    "dtype",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "fp8",
    "fp8_e4m3",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
