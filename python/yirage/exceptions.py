"""Exceptions. Each message says what is wrong, where, with which numbers, and what to do."""


class YirageError(Exception):
    """Everything that yirage raises by itself."""


class Unsupported(YirageError, NotImplementedError):
    """What does not exist here, and why."""


class BackendError(YirageError, RuntimeError):
    """A backend."""


class BackendUnavailableError(BackendError):
    """A backend that is known and cannot be used here: why, what to do, and what there is instead."""


class UnknownBackendError(YirageError, ValueError):
    """A name that is no backend's."""


class DeviceError(BackendError):
    """What a device met."""


class ForkError(BackendError):
    """A process that is a fork of one that had opened a device."""


class GraphError(YirageError, ValueError):
    """A graph that cannot be built, read or written."""


class KernelError(YirageError, ValueError):
    """A persistent kernel that cannot be built, saved, loaded or used so."""


class ArrayError(YirageError, TypeError, ValueError):
    """An array that a graph or kernel does not take: its shape, its strides, the type of its elements."""


class InputNotFoundError(YirageError, LookupError, ValueError):
    """Another number of arrays than the graph has inputs."""


class OptionError(YirageError, ValueError):
    """An argument out of its range."""


class ModelError(YirageError, ValueError):
    """A model whose files are wrong."""


class ModelNotFoundError(ModelError, LookupError):
    """A model that is nowhere: where it was looked for, and what to do."""


class RequestError(YirageError, ValueError):
    """A request that cannot run."""


class EngineError(YirageError, RuntimeError):
    """The engine."""


class RanksError(YirageError, RuntimeError):
    """Ranks that are processes: none were started, one is gone or late, or they do not do the same."""


__all__ = [
    "ArrayError",
    "BackendError",
    "BackendUnavailableError",
    "DeviceError",
    "EngineError",
    "ForkError",
    "GraphError",
    "InputNotFoundError",
    "KernelError",
    "ModelError",
    "ModelNotFoundError",
    "OptionError",
    "RanksError",
    "RequestError",
    "UnknownBackendError",
    "Unsupported",
    "YirageError",
]
