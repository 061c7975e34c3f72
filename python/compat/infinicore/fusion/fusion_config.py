"""How plans are made and kept."""

from yirage import FusionConfig

__all__ = ["FusionConfig"]
