"""Models that answer requests."""

from yirage import LLM, AsyncLLMEngine, CompletionOutput, LLMEngine, RequestOutput, SamplingParams

__all__ = ["LLM", "AsyncLLMEngine", "CompletionOutput", "LLMEngine", "RequestOutput", "SamplingParams"]
