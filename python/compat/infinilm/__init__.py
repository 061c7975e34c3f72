"""InfiniLM by its documented names, over `yirage`."""

from yirage import LLM, FusedInferEngine, InferEngine, SamplingParams

__all__ = ["LLM", "FusedInferEngine", "InferEngine", "SamplingParams"]
