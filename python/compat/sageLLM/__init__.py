"""sageLLM by its documented names, over `yirage`."""
