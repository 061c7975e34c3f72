"""Persistent kernels by the names of Mirage: ``PersistentKernel`` and what stands around it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Literal

from . import _yirage
from ._yirage import (
    CallReport,
    EndedRequest,
    KernelTensor,
    PersistentKernel,
    get_configurations_from_cpu,
    get_configurations_from_gpu,
)


@dataclasses.dataclass(frozen=True)
class PromptLookupConfig:
    """Guesses from the prompt: what followed the last ``ngram_size`` tokens where they stood before, ``spec_length`` of it.

    They spare steps where text repeats, and change no token. ``ngram_size`` is 2 to 64, ``spec_length`` 1 to 255.
    """

    ngram_size: int = 3
    spec_length: int = 5
    method: str = dataclasses.field(default="promptlookup", init=False)


@dataclasses.dataclass(frozen=True)
class LookaheadConfig:
    """Guesses by lookahead decoding, which Mirage has a name for and no layers: a ``PersistentKernel`` refuses it."""

    spec_length: int = 7
    method: str = dataclasses.field(default="lookahead", init=False)


@dataclasses.dataclass
class MPKMetadata:
    """What an ``MPK`` is made of and for. What is ``None`` follows from the model, the device or the others.

    Args:
        mode, num_remote_schedulers, max_seq_length, max_num_batched_requests, max_num_batched_tokens, max_num_pages,
            page_size, profiler_tensor, trace_name, spec_decode_config: as of ``PersistentKernel``.
        total_num_requests: rows of ``step`` and ``tokens``, where these are not given.
        device: the backend.
        weight_from_model: ``True``: weights are read from the model's files.
        model_name, model_path: a name of the catalogue or of a repository, or a folder of safetensors; one of them.
        world_size, rank: 1 and 0.
        step, tokens, num_new_tokens, prompt_lengths: metadata as of ``PersistentKernel``; the other tensors are taken and
            not read.
        eos_token_id: the token that ends a request; without it the tokenizer's, and -1 for none.
        seed: draws tokens; without it the likeliest is taken.
    """

    mode: str = "offline"
    total_num_requests: int = 1
    num_remote_schedulers: int = 0
    max_seq_length: int = 512
    max_num_batched_requests: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_pages: int | None = None
    page_size: int = 64
    max_sm_num: int | None = None
    device: Any = None
    weight_from_model: bool = True
    model_name: str | None = None
    model_path: str | os.PathLike[str] | None = None
    world_size: int = 1
    rank: int = 0
    step: Any = None
    tokens: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    num_new_tokens: Any = None
    prompt_lengths: Any = None
    qo_indptr_buffer: Any = None
    paged_kv_indptr_buffer: Any = None
    paged_kv_indices_buffer: Any = None
    paged_kv_last_page_len_buffer: Any = None
    profiler_tensor: Any = None
    trace_name: str | None = None
    spec_decode_config: PromptLookupConfig | None = None
    eos_token_id: int | None = None
    seed: int | None = None

    def check_valid(self) -> None:
        """Raises ``OptionError`` or ``Unsupported`` for what no kernel is made of."""
        from .exceptions import OptionError, Unsupported

        if not self.weight_from_model:
            why = "weights of an MPK are those of its model's files; attach_input of a PersistentKernel takes arrays"
            raise Unsupported(f"weight_from_model=False is not supported: {why}")
        if self.world_size != 1 or self.rank != 0:
            why = "an MPK has a whole model; build the layers of each rank, and join them by PersistentKernel.ranks"
            raise Unsupported(f"rank {self.rank} of {self.world_size} is not supported: {why}")
        if self.model_name is None and self.model_path is None:
            raise OptionError("model_name and model_path are None: one of them is wanted")
        if (self.step is None) != (self.tokens is None):
            raise OptionError("one of step and tokens is given: both or none are wanted")

    def info_as_string(self) -> str:
        """A line for each value; of tensors their sizes."""
        lines = ["MPKMetadata"]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            shape = getattr(value, "shape", None)
            lines.append(f"{field.name}: {value if shape is None else tuple(shape)}")
        return "\n".join(lines) + "\n"

    def write_to_file(self, file_path: str | os.PathLike[str]) -> None:
        """Writes ``info_as_string`` into a file."""
        with open(file_path, "w", encoding="utf-8") as file:
            file.write(self.info_as_string())

    def print_info(self) -> None:
        """Prints ``info_as_string``."""
        print(self.info_as_string(), end="")


def _say(text: str) -> None:
    import logging

    logging.getLogger("yirage").info("%s", text)


def _zeros(kind: Literal["i", "q"], rows: int, columns: int | None = None) -> Any:
    """Whole numbers of 4 (``i``) or 8 bytes (``q``), in memory of Python's own."""
    size = rows * (columns or 1) * (4 if kind == "i" else 8)
    memory = memoryview(bytearray(size))
    return memory.cast(kind) if columns is None else memory.cast(kind, (rows, columns))


class MPK:
    """A model as a persistent kernel, with its tokenizer.

    ``build()``, ``compile()`` and ``run(prompt)``; what was not done yet is done when it is needed. ``persistent_kernel`` is
    the kernel, ``step`` and ``tokens`` are its metadata.

    Raises:
        OptionError, ArrayError, Unsupported, BackendUnavailableError
    """

    def __init__(self, meta: MPKMetadata) -> None:
        meta.check_valid()
        self.metadata: MPKMetadata = meta
        self.init_mpi()
        rows = meta.total_num_requests
        self.step: Any = _zeros("i", rows) if meta.step is None else meta.step
        self.tokens: Any = _zeros("q", rows, meta.max_seq_length) if meta.tokens is None else meta.tokens
        named: dict[str, Any] = {"step": self.step, "tokens": self.tokens}
        for name in ["num_new_tokens", "prompt_lengths"]:
            if getattr(meta, name) is not None:
                named[name] = getattr(meta, name)
        if meta.max_sm_num is not None:
            _say("MPK: max_sm_num changes nothing: workers are those of the device")
        self.persistent_kernel: PersistentKernel = PersistentKernel(
            mode=meta.mode,
            world_size=meta.world_size,
            mpi_rank=meta.rank,
            num_remote_schedulers=meta.num_remote_schedulers,
            max_seq_length=meta.max_seq_length,
            max_num_batched_requests=meta.max_num_batched_requests,
            max_num_batched_tokens=meta.max_num_batched_tokens,
            max_num_pages=meta.max_num_pages,
            page_size=meta.page_size,
            meta_tensors=named,
            profiler_tensor=meta.profiler_tensor,
            trace_name=meta.trace_name,
            spec_decode_config=meta.spec_decode_config,
            backend=meta.device,
        )
        self.is_built: bool = False
        self._tokenizer: _yirage.Tokenizer | None = None

    def init_mpi(self) -> None:
        """Says which process this is: the only one."""
        self.world_size: int = self.metadata.world_size
        self.rank: int = self.metadata.rank

    @property
    def is_compiled(self) -> bool:
        """Whether it can run."""
        return self.persistent_kernel.is_compiled

    @property
    def model(self) -> str:
        """Where the model is: ``model_path``, else ``model_name``."""
        return os.path.expanduser(os.fspath(self.metadata.model_path or self.metadata.model_name or ""))

    @property
    def tokenizer(self) -> _yirage.Tokenizer:
        """The model's tokenizer."""
        if self._tokenizer is None:
            self._tokenizer = _yirage.load_tokenizer(self.model)
        return self._tokenizer

    def build(self) -> None:
        """Adds the model's layers to the kernel. Raises as ``PersistentKernel.build_model``."""
        self.persistent_kernel.build_model(self.model, seed=self.metadata.seed)
        self.is_built = True

    def _end(self) -> int:
        from .exceptions import YirageError

        if self.metadata.eos_token_id is not None:
            return self.metadata.eos_token_id
        try:
            end = self.tokenizer.eos_token_id
        except YirageError as error:
            _say(f"MPK: no token ends a request, as the model has no tokenizer: {error}")
            return -1
        return -1 if end is None else end

    def compile(self, output_dir: str | os.PathLike[str] | None = None) -> None:
        """Compiles the kernel, and saves it in ``output_dir``. Raises as ``PersistentKernel.compile``."""
        if not self.is_built:
            self.build()
        self.persistent_kernel.compile(output_dir, eos_token_id=self._end())

    def load_new_request(self, prompt: str | Sequence[str], use_template: bool = True) -> None:
        """Gives every row this prompt, or each its own of a list.

        Args:
            use_template: whether the prompt is what a user says in a conversation of the model's template.

        Raises:
            RequestError: another number of prompts than rows, no tokenizer, no template, a prompt that is too long.
        """
        from .exceptions import RequestError

        rows = len(self.step)
        prompts = [prompt] * rows if isinstance(prompt, str) else list(prompt)
        if len(prompts) != rows:
            raise RequestError(f"{len(prompts)} prompts for {rows} rows: one, or one a row, is wanted")
        for row, text in enumerate(prompts):
            self.persistent_kernel.load_new_request(row, self._encoded(text, use_template))

    def _encoded(self, text: str, use_template: bool) -> list[int]:
        if not use_template:
            return self.tokenizer.encode(text)
        ids: list[int] = self.tokenizer.apply_chat_template([{"role": "user", "content": text}])
        return ids

    def init_per_request(self) -> None:
        """What Mirage does before a new request. Here the next call sees the new tokens, so it only compiles what is not."""
        if not self.is_compiled:
            self.compile()

    def __call__(self, max_steps: int | None = None, **others: Any) -> CallReport:
        """Runs until every request has ended, as ``PersistentKernel`` does."""
        self.init_per_request()
        return self.persistent_kernel(max_steps, **others)

    def decode(self, ids: Any) -> str:
        """The text of tokens: a list, or one row of a tensor."""
        return self.tokenizer.decode(ids.tolist() if hasattr(ids, "tolist") else list(ids), skip_special_tokens=True)

    def run(self, prompt: str | Sequence[str], use_template: bool = True) -> list[str]:
        """Loads requests, runs them to their ends, and gives the text of each row: prompt and answer."""
        self.init_per_request()
        self.load_new_request(prompt, use_template)
        self()
        steps, rows = self.step.tolist(), self.tokens.tolist()
        return [self.decode(row[: step + 1]) for step, row in zip(steps, rows, strict=True)]

    def clear_buffers(self) -> None:
        """Has every row begin anew with the token 0 alone."""
        for row in range(len(self.step)):
            self.persistent_kernel.load_new_request(row, [0])

    def finalize(self) -> None:
        """Gives weights, cache and plans back."""
        self.persistent_kernel.finalize()

    def __enter__(self) -> MPK:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()


class SimplePersistentKernel(MPK):
    """A model by its name as a persistent kernel for one request.

    Args:
        model_name: a folder of safetensors, a name of the catalogue or of a repository.
        max_num_tokens: tokens of a step.
        max_context_len: positions of the request, prompt and output together.
        vocab_size: reported where the model's tokenizer has another one, which it keeps.
        eos_token_id: the token that ends the request; -1 for none.
        backend: where it runs; the current backend without it.
        others: further fields of ``MPKMetadata``.
    """

    def __init__(
        self,
        model_name: str,
        max_num_tokens: int = 512,
        max_context_len: int = 2048,
        vocab_size: int = 32000,
        eos_token_id: int = 2,
        *,
        backend: Any = None,
        **others: Any,
    ) -> None:
        meta = MPKMetadata(
            model_path=model_name,
            max_num_batched_tokens=max_num_tokens,
            max_seq_length=max_context_len,
            eos_token_id=eos_token_id,
            device=backend,
            **others,
        )
        super().__init__(meta)
        self.vocab_size: int = vocab_size

    def build(self) -> None:
        """Adds the model's layers to the kernel. Raises as ``PersistentKernel.build_model``."""
        from .exceptions import YirageError

        super().build()
        try:
            has = self.tokenizer.vocab_size
        except YirageError:
            return
        if has != self.vocab_size:
            _say(f"SimplePersistentKernel: vocab_size={self.vocab_size} changes nothing: the model has {has} tokens")


__all__ = [
    "MPK",
    "CallReport",
    "EndedRequest",
    "KernelTensor",
    "LookaheadConfig",
    "MPKMetadata",
    "PersistentKernel",
    "PromptLookupConfig",
    "SimplePersistentKernel",
    "get_configurations_from_cpu",
    "get_configurations_from_gpu",
]
