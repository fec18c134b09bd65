"""Kinds of models, and that the gateway and the control plane name operations alike."""

from __future__ import annotations

import pytest

from controlplane.domain.serving.model_kinds import ModelKind, Operation, model_kind
from gateway.operations import RouteOperation


@pytest.mark.parametrize(
    ("architecture", "files", "kind"),
    [
        ("Qwen3ForCausalLM", (), ModelKind.TEXT),
        ("Qwen2_5_VLForConditionalGeneration", (), ModelKind.TEXT),
        ("InternVLChatModel", (), ModelKind.TEXT),
        ("Qwen3ForCausalLM", ("modules.json",), ModelKind.EMBEDDING),
        ("BertModel", (), ModelKind.EMBEDDING),
        ("XLMRobertaForSequenceClassification", ("modules.json",), ModelKind.RERANKER),
        ("WhisperForConditionalGeneration", (), ModelKind.TRANSCRIPTION),
        ("Qwen3TTSForConditionalGeneration", (), ModelKind.SPEECH),
        ("", ("model_index.json",), ModelKind.IMAGE),
        ("QwenImageTransformer2DModel", ("model_index.json",), ModelKind.IMAGE),
        ("WanPipeline", ("model_index.json",), ModelKind.VIDEO),
        ("WanTransformer3DModel", ("model_index.json",), ModelKind.VIDEO),
        ("HunyuanVideo15Pipeline", ("model_index.json",), ModelKind.VIDEO),
        ("WanTransformer3DModel", (), ModelKind.EMBEDDING),
        ("DLRM", (), None),
        ("", (), None),
    ],
)
def test_a_kind_is_told_by_architecture_and_files(
    architecture: str, files: tuple[str, ...], kind: ModelKind | None
) -> None:
    assert model_kind(architecture, files=files) is kind


def test_a_reranker_that_is_a_causal_language_model_is_told_by_its_name() -> None:
    assert model_kind("Qwen3ForCausalLM", name="Qwen3-Reranker-8B") is ModelKind.RERANKER
    assert model_kind("Qwen3ForCausalLM", name="Qwen3-8B") is ModelKind.TEXT
    assert model_kind("BertModel", name="reranker-base") is ModelKind.EMBEDDING


def test_operations_have_the_names_of_the_gateway() -> None:
    assert [operation.value for operation in Operation] == [one.value for one in RouteOperation]
