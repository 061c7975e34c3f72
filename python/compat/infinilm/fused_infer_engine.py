"""The engine that says which plans it keeps."""

from yirage import FUSION_AVAILABLE, FusedInferEngine, FusionConfig

__all__ = ["FUSION_AVAILABLE", "FusedInferEngine", "FusionConfig"]
