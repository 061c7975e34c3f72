"""Failures on order, to test what a program makes of them: ``inject_faults``."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from . import _yirage


@contextlib.contextmanager
def inject_faults(
    *,
    alloc: int | None = None,
    submit: int | None = None,
    kernel: int | None = None,
    lost: int | None = None,
    memory: int | None = None,
) -> Generator[None, None, None]:
    """Has devices of the backend ``'sim'`` fail that are opened inside of a ``with`` block.

    ``'sim'`` is an accelerator in software, on which graphs, kernels and models run as on any other. Each number says how
    much goes well on a device before the fault; it comes once, except that a lost device stays lost. What was opened
    before, and what other backends have, works as ever.

    Args:
        alloc: memory runs out at this allocation, and is there again for the next one.
        submit: the device does not take this command.
        kernel: this kernel fails when it runs.
        lost: the device is lost when this command should run.
        memory: bytes of memory that a device has, for ever.

    Raises:
        OptionError: no fault is named, a number is below 0, or the block stands in another one.
    """
    _yirage.put_faults(alloc=alloc, submit=submit, kernel=kernel, lost=lost, memory=memory)
    try:
        yield
    finally:
        _yirage.take_faults()


__all__ = ["inject_faults"]
