"""yirage: one engine, every accelerator, always explained.

    >>> import yirage as yr
    >>> graph = yr.new_kernel_graph()
    >>> x = graph.new_input([8, 64], dtype=yr.float32)
    >>> graph.mark_output(graph.silu(x))
    >>> (y,) = graph(inputs=[array])

    >>> llm = yr.LLM("smollm2-135m-instruct")
    >>> llm.generate("Once upon a time", yr.SamplingParams(max_tokens=32))[0].outputs[0].text
"""

from . import exceptions as exceptions
from ._yirage import (
    DTensor as DTensor,
    Equivalence as Equivalence,
    KNGraph as KNGraph,
    STensor as STensor,
    TBGraph as TBGraph,
    Tensor as Tensor,
    __version__ as __version__,
    equivalent as equivalent,
    new_kernel_graph as new_kernel_graph,
    new_threadblock_graph as new_threadblock_graph,
    search_counters as search_counters,
)
from .backends import *  # noqa: F403
from .dtypes import *  # noqa: F403
from .engines import *  # noqa: F403
from .exceptions import *  # noqa: F403
from .faults import *  # noqa: F403
from .fusion import *  # noqa: F403
from .infer import *  # noqa: F403
from .llm import *  # noqa: F403
from .persistent import *  # noqa: F403
from .settings import *  # noqa: F403
from .templates import *  # noqa: F403
