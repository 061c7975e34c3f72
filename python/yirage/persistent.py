"""Persistent kernels by the names of Mirage: ``PersistentKernel`` and what stands around it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from . import _yirage
from ._yirage import (
    CallReport,
    EndedRequest,
    KernelTensor,
    PersistentKernel,
)


@dataclasses.dataclass(frozen=True)
class PromptLookupConfig:
    """Guesses from the prompt: what followed the last ``ngram_size`` tokens where they stood before, ``spec_length`` of it.

    They spare steps where text repeats, and change no token. ``ngram_size`` is 2 to 64, ``spec_length`` 1 to 255.
    """

    ngram_size: int = 3
    spec_length: int = 5
    method: str = dataclasses.field(default="promptlookup", init=False)


__all__ = ["CallReport", "EndedRequest", "KernelTensor", "PersistentKernel", "PromptLookupConfig"]
