"""Sub-graphs that language models have."""

from yirage import OpNode, SubGraph


def create_swiglu_pattern():
    """``output = silu(gate) * up``."""
    nodes = (OpNode("silu", ("gate",), ("activated",)), OpNode("mul", ("activated", "up"), ("output",)))
    return SubGraph(nodes, ("gate", "up"), ("output",))


def create_add_rms_norm_pattern():
    """``output = rms_norm(x + residual) * weight``."""
    nodes = (OpNode("add", ("x", "residual"), ("sum",)), OpNode("rms_norm", ("sum", "weight"), ("output",)))
    return SubGraph(nodes, ("x", "residual", "weight"), ("output",))


__all__ = ["create_add_rms_norm_pattern", "create_swiglu_pattern"]
