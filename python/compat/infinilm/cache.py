"""How much is cached."""

from yirage import StaticKVCacheConfig

__all__ = ["StaticKVCacheConfig"]
