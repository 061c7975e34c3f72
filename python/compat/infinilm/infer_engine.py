"""Forward passes."""

from yirage import GenerationConfig, InferEngine

__all__ = ["GenerationConfig", "InferEngine"]
