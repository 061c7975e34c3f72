"""Weights of a model's files."""

from yirage import load_model_state_dict_by_file

__all__ = ["load_model_state_dict_by_file"]
