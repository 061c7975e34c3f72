"""The list of backends."""

from yirage import BackendRegistry, get_backend, list_available_backends

__all__ = ["BackendRegistry", "get_backend", "list_available_backends"]
