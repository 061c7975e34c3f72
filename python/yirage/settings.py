"""Mirage's settings of a process: ``global_config`` and ``set_gpu_device_id``."""

from __future__ import annotations

from . import _yirage


class GlobalConfig:
    """Mirage's settings. Each does what it can mean here, and says so where that is nothing."""

    __slots__ = ()

    @property
    def gpu_device_id(self) -> int:
        """The number of the current backend's device on which graphs run: 0."""
        return 0

    @gpu_device_id.setter
    def gpu_device_id(self, device_id: int) -> None:
        set_gpu_device_id(device_id)

    @property
    def verbose(self) -> bool:
        """Whether the logger ``yirage`` says lines of level INFO."""
        import logging

        return logging.getLogger("yirage").isEnabledFor(logging.INFO)

    @verbose.setter
    def verbose(self, verbose: bool) -> None:
        import logging

        logger = logging.getLogger("yirage")
        logger.setLevel(logging.INFO if verbose else logging.WARNING)
        # Who asks for lines sees them: a program that has set up `logging` gets them there.
        if verbose and not logger.hasHandlers():
            logger.addHandler(logging.StreamHandler())

    @property
    def bypass_compile_errors(self) -> bool:
        """Whether graphs that cannot be compiled are passed over: never."""
        return False

    @bypass_compile_errors.setter
    def bypass_compile_errors(self, bypass: bool) -> None:
        if bypass:
            import logging

            why = "candidates that cannot run are left out of a search anyway, and a graph's own error is raised"
            logging.getLogger("yirage").info("bypass_compile_errors=True changes nothing: %s", why)


global_config = GlobalConfig()


def set_gpu_device_id(device_id: int) -> None:
    """Chooses the device of the current backend on which graphs run: its first one, 0.

    Raises:
        DeviceError: a number that none of its devices has.
        Unsupported: another device than the first.
    """
    backend = _yirage.get_backend()
    backend.get_device_info(device_id)
    if device_id != 0:
        from .exceptions import Unsupported

        why = "graphs run on the first device of a backend; the maker's variable, such as CUDA_VISIBLE_DEVICES, says which that is"
        raise Unsupported(f"set_gpu_device_id({device_id}) is not supported: {why}")


__all__ = ["GlobalConfig", "global_config", "set_gpu_device_id"]
