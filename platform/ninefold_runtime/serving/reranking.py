"""``/v1/rerank`` over a ``CrossEncoder``, in the form of Jina, Cohere and vLLM."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.embeddings import (
    check_lengths,
    count_model_tokens,
    load_encoder,
    sequence_length,
)
from ninefold_runtime.serving.operations import Operation, OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import (
    RequestRejected,
    parse_boolean,
    parse_integer,
    parse_text,
)

_FIELDS = frozenset({"model", "query", "documents", "top_n", "return_documents"})
_MOST_DOCUMENTS = 1024
_BATCH_SIZE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """Documents to order by their relevance to a query."""

    model: str
    query: str
    documents: tuple[str, ...]
    #: None means all of them.
    top_n: int | None
    return_documents: bool


class Reranker(Protocol):
    """What the operation needs of a model. One thread uses it at a time."""

    @property
    def context_length(self) -> int | None: ...

    def count_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Of each query with its document, untruncated."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The relevance of each document to its query."""


def parse_rerank_request(body: bytes) -> RerankRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = request_fields.parse_object(body)
    request_fields.check_fields(fields, supported=_FIELDS)
    return RerankRequest(
        model=parse_text(fields, "model"),
        query=parse_text(fields, "query"),
        documents=_parse_documents(fields.get("documents")),
        top_n=parse_integer(fields, "top_n", least=1),
        return_documents=parse_boolean(fields, "return_documents", default=True),
    )


class RerankOperation:
    """Reranking by one model."""

    def __init__(self, reranker: Reranker, *, context: OperationContext) -> None:
        self._reranker = reranker
        self._context = context

    def routes(self) -> Mapping[str, Operation]:
        return {"/v1/rerank": self.rerank}

    async def rerank(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted = parse_rerank_request(await request.body())
        self._context.check_model(wanted.model)
        began_at = time.monotonic()
        scores, tokens = await self._context.queue.run(
            lambda _: self._score(wanted), request=request
        )
        self._context.metrics.generated(
            prompt_tokens=tokens, completion_tokens=0, seconds=time.monotonic() - began_at
        )
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: wanted.top_n]
        results: list[dict[str, Any]] = [
            {"index": index, "relevance_score": scores[index]} for index in order
        ]
        if wanted.return_documents:
            for result in results:
                result["document"] = {"text": wanted.documents[result["index"]]}
        await response.json(
            200,
            {
                "id": "rerank-" + uuid.uuid4().hex,
                "model": self._context.model_name,
                "results": results,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            },
        )

    def _score(self, wanted: RerankRequest) -> tuple[list[float], int]:
        pairs = [(wanted.query, document) for document in wanted.documents]
        counts = self._reranker.count_tokens(pairs)
        check_lengths(counts, longest=self._reranker.context_length, param="documents")
        return self._reranker.score(pairs), sum(counts)


def _parse_documents(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_DOCUMENTS:
        raise RequestRejected(
            f"documents must be a list of 1 to {_MOST_DOCUMENTS} texts", param="documents"
        )
    texts: list[Any] = [each.get("text") if isinstance(each, dict) else each for each in value]
    for index, text in enumerate(texts):
        if not isinstance(text, str) or not text:
            raise RequestRejected(
                f'documents[{index}] must be a non-empty string or {{"text": …}} with one',
                param=f"documents[{index}]",
            )
    return tuple(texts)


class CrossEncoderReranker:
    """Implements ``Reranker`` over a ``CrossEncoder``."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def context_length(self) -> int | None:
        return sequence_length(self._model)

    def count_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        return count_model_tokens(self._model, pairs)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        scores = self._model.predict(list(pairs), batch_size=_BATCH_SIZE, show_progress_bar=False)
        return [float(score) for score in scores]


def load_reranking(folder: Path, *, precision: str, context: OperationContext) -> ServedModel:
    """:raises InvalidTaskInput: if the model cannot be loaded."""
    from sentence_transformers import CrossEncoder

    reranker = CrossEncoderReranker(load_encoder(CrossEncoder, folder, precision=precision))
    return ServedModel(
        operations=RerankOperation(reranker, context=context).routes(),
        description=f"CrossEncoder, {reranker.context_length} positions",
        context_length=reranker.context_length,
    )
