"""yirage: one engine, every accelerator, always explained.

    >>> import yirage as yr
    >>> graph = yr.new_kernel_graph()
    >>> x = graph.new_input([8, 64], dtype=yr.float32)
    >>> graph.mark_output(graph.silu(x))
    >>> (y,) = graph(inputs=[array])

    >>> llm = yr.LLM("qwen2.5:0.5b")
    >>> llm.generate("Once upon a time", yr.SamplingParams(max_tokens=32))[0].outputs[0].text
"""

from . import exceptions
from ._yirage import (
    DTensor,
    Equivalence,
    KNGraph,
    STensor,
    TBGraph,
    Tensor,
    __version__,
    equivalent,
    new_kernel_graph,
    new_threadblock_graph,
    search_counters,
)
from .backends import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .exceptions import *  # noqa: F403
from .infer import *  # noqa: F403
from .llm import *  # noqa: F403
from .templates import *  # noqa: F403
