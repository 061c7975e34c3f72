"""InfiniCore's devices and types of elements, over `yirage`."""

import dataclasses

from yirage.dtypes import *  # noqa: F403
from yirage.dtypes import __all__ as _dtypes


@dataclasses.dataclass(frozen=True)
class device:  # noqa: N801 - as InfiniCore calls it
    """A device by the name of its backend and its number. Whether it is there is told where it is used."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


__all__ = ["device", *_dtypes]
