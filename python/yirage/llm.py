"""Models: ``LLM``, by the names and defaults of vLLM."""

from __future__ import annotations

import asyncio
from typing import Any, Iterator

from . import _yirage
from ._yirage import SamplingParams
from .outputs import (
    CompletionOutput,
    EmbeddingOutput,
    Logprob,
    PoolingRequestOutput,
    RequestOutput,
    ScoringOutput,
)


def _progress(total: int, wanted: bool) -> Any:
    if not wanted or total < 2:
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return tqdm(total=total, desc="Processed prompts", dynamic_ncols=True)


def _with_progress(run: Any, given: Any, params: Any, wanted: bool) -> list[RequestOutput]:
    several: Any = given
    bar = _progress(len(several) if isinstance(given, (list, tuple)) else 1, wanted)
    if bar is None:
        outputs: list[RequestOutput] = run(given, params)
        return outputs
    with bar:

        def finished(output: RequestOutput) -> None:
            bar.update(1)

        outputs = run(given, params, finished)
        return outputs


class TextStream:
    """The answer to a request while it is computed: its ``RequestOutput`` after each token, all of it so far.

    Read it by ``for`` or by ``async for``. It is cancelled when it is dropped or left as a context.
    """

    def __init__(self, native: _yirage.Stream) -> None:
        self._native = native

    def __iter__(self) -> Iterator[RequestOutput]:
        return self

    def __next__(self) -> RequestOutput:
        output: RequestOutput | None = self._native.next()
        if output is None:
            raise StopIteration
        return output

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> RequestOutput:
        loop = asyncio.get_running_loop()
        while True:
            more = asyncio.Event()
            ended, output = self._native.poll(lambda: loop.call_soon_threadsafe(more.set))
            if output is not None:
                found: RequestOutput = output
                return found
            if ended:
                raise StopAsyncIteration
            await more.wait()

    def cancel(self) -> None:
        """Ends the answer where it is; what was computed until then still comes."""
        self._native.cancel()

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    async def __aenter__(self) -> TextStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()


class LLM(_yirage.LLM):
    """A model that is loaded.

    Args:
        model: a file, a folder, a name of the catalogue or of a repository.
        task: ``'generate'``, ``'embed'``, ``'score'``, or ``'auto'`` for what the model is made for. ``'embed'`` makes
            vectors with models that continue texts as well.
        backend: where it runs; the current backend without it.
        threads: of a CPU.
        precision: ``'fast'`` or ``'exact'``.
        max_model_len: tokens of a prompt with its answer.
        max_num_seqs: requests that run at once.
        max_num_batched_tokens: tokens of a step.
        kv_cache_dtype: ``'auto'``, ``'float32'``, ``'float16'``, ``'bfloat16'`` or ``'q8_0'``.
        kv_cache_memory_bytes: bytes of the cache; without it, four requests of full length.
        enable_prefix_caching: whether the cached beginnings of prompts are used again.
        speculative_config: how tokens are guessed ahead, which changes no output: ``'auto'`` looks up how the text went on
            before, ``None`` guesses nothing; a dict as vLLM's has ``method`` (``'ngram'``, ``'draft_model'``, or
            ``'mtp'``: by the model's own layer for that), ``num_speculative_tokens``, ``prompt_lookup_min``, and
            ``model``, which guesses.
        variant: choices of the device's kernels, such as ``'fetch=2K,many=single'``; without it, what was fastest when the
            model first started on this processor. Changes no output.
        seed: of requests that have none.
        tp: ranks that compute the model together, by vLLM's name ``tensor_parallel_size``: each is a process with its part of
            the weights, which ends with this one. Changes no output.
        enable_expert_parallel: whether each of several ranks has experts of its own, instead of rows of all. Changes no output.
        pp: pipeline stages, by vLLM's name ``pipeline_parallel_size``: ranks of which each has some layers, instead of a part of
            every layer. Changes no output.
        lora: adapters beside the model: a folder of PEFT or a GGUF file, ``(path, scale)``, or a list of these.
    """

    def generate(self, prompts: Any, sampling_params: Any = None, *, use_tqdm: bool = True) -> list[RequestOutput]:
        """Continues prompts: texts, lists of token ids, or dicts with ``prompt`` or ``prompt_token_ids``.

        Beside it ``multi_modal_data={'image': picture}`` has a picture, or a list of them, for each picture token of the
        prompt: the name of a file, its bytes, an image of Pillow, or an array of NumPy.
        """
        return _with_progress(self._generate, prompts, sampling_params, use_tqdm)

    def chat(self, messages: Any, sampling_params: Any = None, *, use_tqdm: bool = True) -> list[RequestOutput]:
        """Answers a conversation (a list of dicts with ``role`` and ``content``), or each of a list of them.

        Parts of a user's ``content`` may be pictures: ``image_url`` with a ``data:`` URL, or ``image_pil``.
        """
        return _with_progress(self._chat, messages, sampling_params, use_tqdm)

    def stream(self, prompt: Any, sampling_params: Any = None) -> TextStream:
        """Continues one prompt, read while it is computed."""
        return TextStream(self._stream(prompt, sampling_params))

    def chat_stream(self, messages: Any, sampling_params: Any = None) -> TextStream:
        """Answers one conversation, read while it is computed."""
        return TextStream(self._stream(messages, sampling_params, True))

    def embed(
        self, prompts: Any, *, pooling: str | None = None, normalize: bool | None = None
    ) -> list[PoolingRequestOutput]:
        """A vector for each text: ``outputs.embedding``."""
        rows = self._embed(prompts, pooling, normalize)
        return [PoolingRequestOutput(str(i), EmbeddingOutput(row), ids) for i, (ids, row) in enumerate(rows)]

    def score(self, text_1: Any, text_2: Any) -> list[PoolingRequestOutput]:
        """A score for each pair of texts: ``outputs.score``. One text meets each of the others."""
        first = [text_1] if isinstance(text_1, str) else list(text_1)
        second = [text_2] if isinstance(text_2, str) else list(text_2)
        if len(first) == 1:
            first = first * len(second)
        rows = self._score(list(zip(first, second, strict=True)))
        return [PoolingRequestOutput(str(i), ScoringOutput(row[0]), ids) for i, (ids, row) in enumerate(rows)]

    def __enter__(self) -> LLM:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = [
    "LLM",
    "CompletionOutput",
    "EmbeddingOutput",
    "Logprob",
    "PoolingRequestOutput",
    "RequestOutput",
    "SamplingParams",
    "ScoringOutput",
    "TextStream",
]
