"""The kind of a model by the files of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain.serving import model_kinds
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.serving.model_kinds import ServedKind, model_kind

LOGIT_SCORE = [
    {"idx": 0, "type": "sentence_transformers.base.modules.transformer.Transformer"},
    {"idx": 1, "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"},
]
POOLING = [{"idx": 0, "type": "sentence_transformers.models.Transformer"}]


def _folder(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def _config(architecture: str, **fields: Any) -> dict[str, Any]:
    return {"model.safetensors": "", "config.json": {"architectures": [architecture], **fields}}


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (_config("Qwen2ForCausalLM"), ServedKind.TEXT),
        (
            _config("Qwen2_5_VLForConditionalGeneration", vision_config={}),
            ServedKind.TEXT,
        ),
        (_config("WhisperForConditionalGeneration"), ServedKind.TRANSCRIPTION),
        (
            _config("XLMRobertaForSequenceClassification", id2label={"0": "LABEL_0"}),
            ServedKind.RERANKER,
        ),
        (_config("BertForSequenceClassification", num_labels=1), ServedKind.RERANKER),
        (
            _config("Qwen3ForCausalLM")
            | {"modules.json": LOGIT_SCORE, "1_LogitScore/config.json": {}},
            ServedKind.RERANKER,
        ),
        (_config("BertModel"), ServedKind.EMBEDDING),
        (_config("Qwen3Model"), ServedKind.EMBEDDING),
        (_config("Qwen3ForCausalLM") | {"modules.json": POOLING}, ServedKind.EMBEDDING),
        (
            {"0_Transformer/model.safetensors": "", "modules.json": POOLING},
            ServedKind.EMBEDDING,
        ),
        ({"unet/model.safetensors": "", "model_index.json": {}}, ServedKind.IMAGE),
    ],
)
def test_a_served_model_is_recognised(tmp_path: Path, files: Any, kind: ServedKind) -> None:
    assert model_kind(_folder(tmp_path, files)) is kind
    architectures = files.get("config.json", {}).get("architectures", [""])
    planned = model_kinds.model_kind(architectures[0], files=files)
    assert planned is not None
    assert planned.value == kind.value, "the control plane decides otherwise"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config.json": {}}, "safetensors"),
        ({"model.safetensors": ""}, "config.json"),
        (_config("BertForSequenceClassification"), "with 2 labels"),
        (_config("T5ForConditionalGeneration"), "T5ForConditionalGeneration is not served"),
        (_config("BertForMaskedLM"), "BertForMaskedLM is not served"),
        ({"model.safetensors": "", "config.json": {}}, "without architectures"),
        ({"model.safetensors": "", "config.json": []}, "must contain a JSON dict"),
        (
            _config("BertModel") | {"modules.json": [{"type": "os.path.Module"}]},
            "only modules of sentence_transformers",
        ),
        (
            _config("BertModel")
            | {
                "modules.json": POOLING,
                "config_sentence_transformers.json": {"model_type": "SparseEncoder"},
            },
            "SparseEncoder",
        ),
    ],
)
def test_what_is_not_served_is_refused(tmp_path: Path, files: Any, message: str) -> None:
    with pytest.raises(InvalidTaskInput, match=message):
        model_kind(_folder(tmp_path, files))
