"""How much is cached."""

from yirage import PagedKVCacheConfig, StaticKVCacheConfig

__all__ = ["PagedKVCacheConfig", "StaticKVCacheConfig"]
