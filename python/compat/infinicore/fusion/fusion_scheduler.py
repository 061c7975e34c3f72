"""What runs sub-graphs."""

from yirage import FusionScheduler

__all__ = ["FusionScheduler"]
