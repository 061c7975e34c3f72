"""InfiniLM by its documented names, over `yirage`."""

from yirage import LLM, AsyncLLMEngine, FusedInferEngine, InferEngine, LLMEngine, SamplingParams

__all__ = ["LLM", "AsyncLLMEngine", "FusedInferEngine", "InferEngine", "LLMEngine", "SamplingParams"]
