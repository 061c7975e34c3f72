"""Sub-graphs of named operations and their scheduler."""

from yirage import FusionConfig, FusionScheduler, OpNode, SubGraph

__all__ = ["FusionConfig", "FusionScheduler", "OpNode", "SubGraph"]
