"""Operations over named values."""

from yirage import OpNode, SubGraph

__all__ = ["OpNode", "SubGraph"]
