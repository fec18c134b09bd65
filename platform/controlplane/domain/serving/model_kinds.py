"""Kinds of models by what they do, and the operations by which they are used.

Operations are those of the gateway (``gateway.operations``), which imports nothing from here; a test compares
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum


class ModelKind(StrEnum):
    TEXT = "text"
    EMBEDDING = "embedding"
    RERANKER = "reranker"
    TRANSCRIPTION = "transcription"
    SPEECH = "speech"
    IMAGE = "image"
    VIDEO = "video"


class Operation(StrEnum):
    """An operation of a served model."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    IMAGES = "images"
    TRANSCRIPTIONS = "transcriptions"
    TRANSLATIONS = "translations"
    SPEECH = "speech"
    VIDEOS = "videos"


#: Kinds that a file tells, whatever the architecture: what sentence-transformers and diffusers write.
KIND_MARKERS: Mapping[ModelKind, str] = {
    ModelKind.EMBEDDING: "modules.json",
    ModelKind.IMAGE: "model_index.json",
    ModelKind.VIDEO: "model_index.json",
}
#: Pipelines of diffusers that generate videos and have no "Video" in their names.
_VIDEO_PIPELINES = frozenset(
    {
        "AllegroPipeline",
        "LTXPipeline",
        "LTX2Pipeline",
        "MochiPipeline",
        "WanPipeline",
    }
)
#: Diffusers names networks that generate videos this way.
_VIDEO_NETWORK = "Transformer3DModel"
_TRANSCRIPTION = ("WhisperForConditionalGeneration", "Qwen3ASRForConditionalGeneration")
#: Text to speech; they are named as models that generate text are.
_SPEECH = ("Qwen3TTSForConditionalGeneration",)
_GENERATIVE = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
#: Architectures that generate although they are named as encoders are.
_GENERATIVE_MODELS = frozenset({"ChatGLMModel", "InternVLChatModel", "MiniCPMV"})


#: Folder of sentence-transformers' module that scores by the logits of two tokens, yes and no.
LOGIT_SCORE_MODULE = "LogitScore"
#: In the name of rerankers that are published as causal language models without that module.
_RERANKER_NAME = "reranker"


def model_kind(
    architecture: str, *, files: Collection[str] = (), name: str = ""
) -> ModelKind | None:
    """The kind of a model; None if it is of no kind that is served.

    :param architecture: ``architectures[0]`` of its ``config.json``; of diffusers the pipeline or its network.
    :param files: paths of its files. Embedding models may have the architecture of a generative one.
    :param name: by which rerankers are told that are generative models otherwise (Qwen3-Reranker).
    """
    scores_tokens = architecture.endswith("ForCausalLM") and (
        _RERANKER_NAME in name.lower() or any(LOGIT_SCORE_MODULE in path for path in files)
    )
    is_pipeline = KIND_MARKERS[ModelKind.IMAGE] in files
    rules = (
        (is_pipeline and _generates_videos(architecture), ModelKind.VIDEO),
        (is_pipeline, ModelKind.IMAGE),
        (architecture in _TRANSCRIPTION, ModelKind.TRANSCRIPTION),
        (architecture in _SPEECH, ModelKind.SPEECH),
        (
            architecture.endswith("ForSequenceClassification") or scores_tokens,
            ModelKind.RERANKER,
        ),
        (KIND_MARKERS[ModelKind.EMBEDDING] in files, ModelKind.EMBEDDING),
        (
            architecture.endswith(_GENERATIVE) or architecture in _GENERATIVE_MODELS,
            ModelKind.TEXT,
        ),
        (architecture.endswith("Model"), ModelKind.EMBEDDING),
    )
    return next((kind for applies, kind in rules if applies), None)


def _generates_videos(architecture: str) -> bool:
    return (
        "Video" in architecture
        or architecture in _VIDEO_PIPELINES
        or architecture.endswith(_VIDEO_NETWORK)
    )
