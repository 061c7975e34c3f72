"""Requests by their ids: ``LLMEngine`` and ``AsyncLLMEngine``, by the names of vLLM."""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator
from typing import Any

from ._yirage import Tokenizer
from .llm import LLM, TextStream
from .outputs import RequestOutput


class _Requests:
    """A model, and the requests to it that have not ended."""

    def __init__(self, model: Any, **options: Any) -> None:
        self.llm: LLM = LLM(model, **options)
        self._open: dict[str, TextStream] = {}
        self._numbers = itertools.count()

    def _add(self, request_id: str, prompt: Any, sampling_params: Any) -> TextStream:
        if request_id in self._open:
            from .exceptions import RequestError

            raise RequestError(f"the request {request_id!r} is still open: each request has an id of its own")
        self._open[request_id] = stream = self.llm.stream(prompt, sampling_params)
        return stream

    def _cancel(self, request_id: str | list[str]) -> None:
        for name in [request_id] if isinstance(request_id, str) else request_id:
            if (stream := self._open.get(name)) is not None:
                stream.cancel()

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self.llm.get_tokenizer()


class LLMEngine(_Requests):
    """A model that answers requests step by step. Arguments are those of ``LLM``.

    Requests run from when they are added, all of them together; ``step`` gives what has come since.
    """

    def add_request(self, request_id: str, prompt: Any, params: Any = None) -> None:
        """Adds a request; ``prompt`` and ``params`` as of ``LLM.stream``.

        Raises:
            RequestError: an id of a request that has not ended, a prompt or parameters that cannot be computed.
        """
        self._add(request_id, prompt, params)

    def abort_request(self, request_id: str | list[str]) -> None:
        """Ends requests where they are; what was computed until then still comes. Ids of no open request change nothing."""
        self._cancel(request_id)

    def has_unfinished_requests(self) -> bool:
        """Whether any request has more to say."""
        return bool(self._open)

    def get_num_unfinished_requests(self) -> int:
        """How many requests have more to say."""
        return len(self._open)

    def step(self) -> list[RequestOutput]:
        """Waits until something comes, and gives the outputs of the requests that it came for: all of each so far."""
        more = threading.Event()
        while self._open:
            more.clear()
            found = [output for name in list(self._open) if (output := self._polled(name, more)) is not None]
            if found:
                return found
            more.wait()
        return []

    def _polled(self, name: str, more: threading.Event) -> RequestOutput | None:
        output: RequestOutput | None
        try:
            ended, output = self._open[name]._native.poll(more.set)
        except BaseException:
            # Who is told that a request has failed is told once.
            del self._open[name]
            raise
        if output is not None:
            output.request_id = name
        if ended or (output is not None and output.finished):
            del self._open[name]
        return output


class AsyncLLMEngine(_Requests):
    """A model for programs with a loop of events. Arguments are those of ``LLM``."""

    async def generate(
        self, prompt: Any, sampling_params: Any = None, request_id: str | None = None
    ) -> AsyncIterator[RequestOutput]:
        """Continues a prompt: its output after each token, all of it so far. Leaving the loop ends the request.

        Raises:
            RequestError: an id of a request that has not ended, a prompt or parameters that cannot be computed.
        """
        name = f"request-{next(self._numbers)}" if request_id is None else request_id
        stream = self._add(name, prompt, sampling_params)
        try:
            async for output in stream:
                output.request_id = name
                yield output
        finally:
            stream.cancel()
            self._open.pop(name, None)

    async def abort(self, request_id: str | list[str]) -> None:
        """Ends requests where they are; what was computed until then still comes."""
        self._cancel(request_id)

    def shutdown(self) -> None:
        """Ends all requests, and gives weights and caches back."""
        self._cancel(list(self._open))
        self.llm.close()


__all__ = ["AsyncLLMEngine", "LLMEngine"]
