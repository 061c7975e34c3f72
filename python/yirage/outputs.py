"""What requests give, by the names of vLLM."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Logprob:
    """How likely a token was. ``rank`` is its place among the likeliest, from 1; ``None`` where it is not among those told."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclasses.dataclass
class CompletionOutput:
    """An answer. ``finish_reason`` is ``'stop'``, ``'length'`` or ``'abort'``, and ``None`` while it is not finished;
    ``stop_reason`` the stop text or stop token that ended it."""

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    logprobs: list[dict[int, Logprob]] | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclasses.dataclass
class RequestOutput:
    """A prompt with its answers."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool
    prompt_logprobs: list[dict[int, Logprob] | None] | None = None
    metrics: dict[str, Any] | None = None
    num_cached_tokens: int | None = None


@dataclasses.dataclass
class EmbeddingOutput:
    """The vector of a text."""

    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclasses.dataclass
class ScoringOutput:
    """How well two texts belong together."""

    score: float


@dataclasses.dataclass
class PoolingRequestOutput:
    """A text, or a pair of them, with what was computed of it."""

    request_id: str
    outputs: Any
    prompt_token_ids: list[int]
    finished: bool = True
