"""Over how many devices a model is spread."""

from yirage import DistConfig

__all__ = ["DistConfig"]
