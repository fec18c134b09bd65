"""``/v1/embeddings`` over a ``SentenceTransformer``."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving import request_fields
from ninefold_runtime.serving.asgi import AsgiRequest, AsgiResponse
from ninefold_runtime.serving.operations import Operation, OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import (
    RequestRejected,
    parse_choice,
    parse_integer,
    parse_text,
    parse_texts_or_tokens,
)

_FIELDS = frozenset({"model", "input", "encoding_format", "dimensions"})
_MOST_INPUTS = 2048
#: Inputs that go through the model at once.
_BATCH_SIZE = 32

EmbeddingInput = str | tuple[int, ...]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest:
    """Texts or tokens, and the form of their vectors."""

    model: str
    inputs: tuple[EmbeddingInput, ...]
    #: Whether vectors are float32, little-endian, in base64.
    is_base64: bool
    #: None means as many as the model has.
    dimensions: int | None


class Embedder(Protocol):
    """What the operation needs of a model. One thread uses it at a time."""

    @property
    def dimensions(self) -> int: ...

    @property
    def context_length(self) -> int | None: ...

    def count_tokens(self, inputs: Sequence[EmbeddingInput]) -> list[int]:
        """Of each input, untruncated, with the special tokens that the model adds to texts."""

    def embed(self, inputs: Sequence[EmbeddingInput]) -> Vectors:
        """One row for each input."""


def parse_embedding_request(body: bytes) -> EmbeddingRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = request_fields.parse_object(body)
    request_fields.check_fields(fields, supported=_FIELDS)
    return EmbeddingRequest(
        model=parse_text(fields, "model"),
        inputs=parse_texts_or_tokens(fields, "input", most=_MOST_INPUTS),
        is_base64=parse_choice(fields, "encoding_format", ("float", "base64")) == "base64",
        dimensions=parse_integer(fields, "dimensions", least=1),
    )


class EmbeddingOperation:
    """Embeddings of one model."""

    def __init__(self, embedder: Embedder, *, context: OperationContext) -> None:
        self._embedder = embedder
        self._context = context

    def routes(self) -> Mapping[str, Operation]:
        return {"/v1/embeddings": self.embed}

    async def embed(self, request: AsgiRequest, response: AsgiResponse) -> None:
        wanted = parse_embedding_request(await request.body())
        self._context.check_model(wanted.model)
        if (wanted.dimensions or 0) > self._embedder.dimensions:
            raise RequestRejected(
                f"dimensions is {wanted.dimensions}; this model's vectors have "
                f"{self._embedder.dimensions}",
                param="dimensions",
            )
        began_at = time.monotonic()
        vectors, tokens = await self._context.queue.run(
            lambda _: self._embed(wanted), request=request
        )
        self._context.metrics.generated(
            prompt_tokens=tokens, completion_tokens=0, seconds=time.monotonic() - began_at
        )
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode()
                if wanted.is_base64
                else vector.tolist(),
            }
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        await response.json(
            200,
            {"object": "list", "data": data, "model": self._context.model_name, "usage": usage},
        )

    def _embed(self, wanted: EmbeddingRequest) -> tuple[Vectors, int]:
        counts = self._embedder.count_tokens(wanted.inputs)
        check_lengths(counts, longest=self._embedder.context_length, param="input")
        vectors = self._embedder.embed(wanted.inputs)
        if wanted.dimensions is not None:
            vectors = truncate(vectors, dimensions=wanted.dimensions)
        return vectors, sum(counts)


def truncate(vectors: Vectors, *, dimensions: int) -> Vectors:
    """The first dimensions of each vector, of length 1 again."""
    cut = vectors[:, :dimensions]
    lengths = np.linalg.norm(cut, axis=1, keepdims=True)
    result: Vectors = cut / np.maximum(lengths, np.finfo(np.float32).tiny)
    return result


def check_lengths(counts: Sequence[int], *, longest: int | None, param: str) -> None:
    """:raises RequestRejected: naming the first input with more tokens than the model reads."""
    for index, count in enumerate(counts):
        if longest is not None and count > longest:
            raise RequestRejected(
                f"{param}[{index}] has {count} tokens; this model's maximum context length is "
                f"{longest} tokens. Please shorten it.",
                param=param,
                code="context_length_exceeded",
            )


class EncoderEmbedder:
    """Implements ``Embedder`` over a ``SentenceTransformer``."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._vocabulary = len(model.tokenizer)

    @property
    def dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    @property
    def context_length(self) -> int | None:
        return sequence_length(self._model)

    def count_tokens(self, inputs: Sequence[EmbeddingInput]) -> list[int]:
        texts = [each for each in inputs if isinstance(each, str)]
        counts = iter(count_model_tokens(self._model, texts))
        return [next(counts) if isinstance(each, str) else len(each) for each in inputs]

    def embed(self, inputs: Sequence[EmbeddingInput]) -> Vectors:
        texts = [each for each in inputs if isinstance(each, str)]
        tokens = [each for each in inputs if not isinstance(each, str)]
        of_texts = iter(self._model.encode(texts, batch_size=_BATCH_SIZE, show_progress_bar=False))
        of_tokens = iter(self._embed_tokens(tokens))
        rows = [next(of_texts if isinstance(each, str) else of_tokens) for each in inputs]
        return np.stack(rows).astype(np.float32)

    def _embed_tokens(self, inputs: Sequence[tuple[int, ...]]) -> list[Vectors]:
        """Of tokens as they are: nothing is added to them."""
        import torch

        vectors: list[Vectors] = []
        for begin in range(0, len(inputs), _BATCH_SIZE):
            batch = [list(each) for each in inputs[begin : begin + _BATCH_SIZE]]
            for token in (token for each in batch for token in each):
                if not 0 <= token < self._vocabulary:
                    raise RequestRejected(
                        f"input has the token {token}; this model's tokens are from 0 to "
                        f"{self._vocabulary - 1}",
                        param="input",
                    )
            padded = self._model.tokenizer.pad({"input_ids": batch}, return_tensors="pt")
            with torch.inference_mode():
                output = self._model(
                    {name: value.to(self._model.device) for name, value in padded.items()}
                )
            vectors += list(output["sentence_embedding"].float().cpu().numpy())
        return vectors


def load_embedding(folder: Path, *, precision: str, context: OperationContext) -> ServedModel:
    """:raises InvalidTaskInput: if the model cannot be loaded."""
    from sentence_transformers import SentenceTransformer

    model = load_encoder(SentenceTransformer, folder, precision=precision)
    embedder = EncoderEmbedder(model)
    return ServedModel(
        operations=EmbeddingOperation(embedder, context=context).routes(),
        description=f"SentenceTransformer with {embedder.dimensions} dimensions, "
        f"{embedder.context_length} positions",
        context_length=embedder.context_length,
    )


def load_encoder(model_class: Any, folder: Path, *, precision: str) -> Any:
    """A ``SentenceTransformer`` or ``CrossEncoder`` on the device of this process.

    :raises InvalidTaskInput: if it cannot be loaded.
    """
    from ninefold_runtime import model_loading

    try:
        return model_class(
            str(folder),
            device=str(model_loading.current_device()),
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={
                "dtype": model_loading.torch_dtype(precision),
                "use_safetensors": True,
            },
        ).eval()
    except (OSError, ValueError, KeyError, ImportError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidTaskInput(f"the model cannot be loaded: {error}"[:400]) from error


def sequence_length(model: Any) -> int | None:
    """Tokens that an encoder reads of one input; None without a limit."""
    length = model.max_seq_length
    return None if length is None else int(length)


def count_model_tokens(model: Any, inputs: Sequence[Any]) -> list[int]:
    """Of each text or pair, as the encoder reads it but untruncated."""
    counts: list[int] = []
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    for begin in range(0, len(inputs), _BATCH_SIZE):
        features = model.preprocess(
            list(inputs[begin : begin + _BATCH_SIZE]),
            prompt=prompt,
            processing_kwargs={"text": {"truncation": False}},
        )
        counts += [int(count) for count in features["attention_mask"].sum(dim=1)]
    return counts
