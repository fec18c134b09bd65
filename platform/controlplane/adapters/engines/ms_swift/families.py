"""How ms-swift calls a model's family, and the way in which its conversations are written.

It cannot tell from ``config.json`` alone where several of its families share an architecture, and then asks for
both words. The words are those of its own tables; a test looks each of them up there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.ports.engines import ModelFacts

#: Vocabularies above this are Llama 3's, whose conversations are written in another way than Llama 2's.
_LLAMA_3_FROM = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    #: ``--model_type``.
    model_type: str
    #: ``--template``.
    template: str


LLAMA_3 = Family(model_type="llama", template="llama3")
FAMILIES: Mapping[str, Family] = {
    "DeepseekV3ForCausalLM": Family(model_type="deepseek_v3", template="deepseek_v2_5"),
    "Gemma2ForCausalLM": Family(model_type="gemma2", template="gemma"),
    "Gemma3ForCausalLM": Family(model_type="gemma3_text", template="gemma3_text"),
    "GemmaForCausalLM": Family(model_type="gemma", template="gemma"),
    "Glm4MoeForCausalLM": Family(model_type="glm4_moe", template="glm4_5"),
    "GptOssForCausalLM": Family(model_type="gpt_oss", template="gpt_oss"),
    "HunYuanDenseV1ForCausalLM": Family(model_type="hunyuan_v1_dense", template="hunyuan"),
    "InternLM2ForCausalLM": Family(model_type="internlm2", template="internlm2"),
    "InternLM3ForCausalLM": Family(model_type="internlm3", template="internlm2"),
    "LlamaForCausalLM": Family(model_type="llama", template="llama"),
    "MistralForCausalLM": Family(model_type="mistral", template="llama"),
    "MixtralForCausalLM": Family(model_type="mixtral", template="llama"),
    "Phi3ForCausalLM": Family(model_type="phi3", template="phi3"),
    "Qwen2ForCausalLM": Family(model_type="qwen2", template="qwen2_5"),
    "Qwen2MoeForCausalLM": Family(model_type="qwen2_moe", template="qwen"),
    "Qwen3ForCausalLM": Family(model_type="qwen3", template="qwen3"),
    "Qwen3MoeForCausalLM": Family(model_type="qwen3_moe", template="qwen3"),
    "SeedOssForCausalLM": Family(model_type="seed_oss", template="seed_oss"),
}


def family(model: ModelFacts) -> Family:
    """:raises KeyError: if ms-swift is not told of such models; ``check`` says so before."""
    vocabulary = model.config.get("vocab_size", 0)
    if model.architecture == "LlamaForCausalLM" and vocabulary > _LLAMA_3_FROM:
        return LLAMA_3
    return FAMILIES[model.architecture]


def check(model: ModelFacts) -> Iterator[FieldFinding]:
    """Why ms-swift cannot, or must not, train the model."""
    if model.architecture not in FAMILIES:
        yield FieldFinding(
            field="model",
            message=f"{model.name} is a {model.architecture or 'model of unknown architecture'}, of "
            f"which this product cannot tell ms-swift; it can of {', '.join(FAMILIES)}",
        )
    if model.config.get("auto_map"):
        yield FieldFinding(
            field="model",
            message=f"{model.name} brings code of its own (auto_map in its config.json), which "
            "ms-swift would run unasked; choose another engine or a model without",
        )
