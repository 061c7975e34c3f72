"""Sub-graphs that models have."""

from .llm_patterns import create_add_rms_norm_pattern, create_swiglu_pattern

__all__ = ["create_add_rms_norm_pattern", "create_swiglu_pattern"]
