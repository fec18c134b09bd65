"""Known model classes, their differences from a Llama decoder, and their parameter counts.

The defaults are those of Llama: gated feed-forward networks, two norms per layer without bias, no bias in
matrices. Source: the modelling code of transformers 5; ``tests/engine`` counts each class there.

Parameters are counted matrix by matrix as the modelling code creates them::

    all  =  tokens V·h  (twice unless tied)  +  Σ layers (attention + feed-forward + norms)  +  last norm

Active parameters are those that one token uses: of a mixture only ``per_token`` experts of each layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from controlplane.domain.architectures.architecture import (
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
)


class SlidingWindowRule(StrEnum):
    """Which layers use ``sliding_window`` if ``layer_types`` does not say."""

    NEVER = "never"
    #: Every layer, if the configuration names a window.
    ALWAYS = "always"
    #: From layer ``max_window_layers`` on, if ``use_sliding_window`` is true.
    OPT_IN = "asked"
    #: All but every n-th, where n is ``sliding_window_pattern``.
    PATTERN = "pattern"


class BiasedProjections(StrEnum):
    """Which matrices have a bias."""

    NONE = "none"
    #: Of queries, keys and values.
    QKV = "qkv"
    #: All of attention.
    ATTENTION = "attention"
    #: All of attention, of feed-forward parts and of norms.
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelClassTraits:
    """How a model class differs from a Llama decoder."""

    family: str
    matrices: int = 3
    norms: int = 2
    biases: BiasedProjections = BiasedProjections.NONE
    #: Queries and keys are normalised per head.
    head_norms: bool = False
    #: Queries have a gate of the same size.
    gated_queries: bool = False
    tied: bool = False
    windows: SlidingWindowRule = SlidingWindowRule.NEVER
    #: Every n-th layer has full attention, if the configuration does not say.
    pattern: int = 0
    #: Intermediate size as a multiple of the hidden size, if the configuration does not state it.
    intermediate_factor: int = 0
    #: The configured intermediate size counts both halves of a gated network.
    doubled_intermediate: bool = False
    #: Head size, if the configuration does not state it.
    head_dim: int = 0
    #: Every n-th layer has attention, the others are recurrent; 0 without recurrent layers.
    attention_interval: int = 0
    #: A scalar gate scales the output of shared experts.
    shared_gate: bool = False
    #: Names of fields → names that this class writes.
    names: Mapping[str, str] | None = None
    #: False for encoders, which keep nothing of a token.
    decodes: bool = True
    #: Learnt positions and types of tokens, norms of embeddings and the pooler of an encoder.
    encoder: bool = False


_QWEN2 = ModelClassTraits(
    family="qwen2", biases=BiasedProjections.QKV, windows=SlidingWindowRule.OPT_IN
)
_QWEN3 = ModelClassTraits(
    family="qwen3", head_norms=True, windows=SlidingWindowRule.OPT_IN, head_dim=128
)
_GEMMA2 = ModelClassTraits(
    family="gemma2", norms=4, tied=True, windows=SlidingWindowRule.PATTERN, pattern=2, head_dim=256
)
_GEMMA3 = replace(_GEMMA2, family="gemma3", pattern=6, head_norms=True)
_ENCODER = ModelClassTraits(
    family="bert", matrices=2, biases=BiasedProjections.ALL, tied=True, decodes=False, encoder=True
)

MODEL_CLASSES: Mapping[str, ModelClassTraits] = {
    "LlamaForCausalLM": ModelClassTraits(family="llama"),
    "MistralForCausalLM": ModelClassTraits(family="mistral", windows=SlidingWindowRule.ALWAYS),
    "MixtralForCausalLM": ModelClassTraits(family="mixtral", windows=SlidingWindowRule.ALWAYS),
    "Qwen2ForCausalLM": _QWEN2,
    "Qwen2MoeForCausalLM": replace(_QWEN2, family="qwen2_moe", shared_gate=True),
    "Qwen3ForCausalLM": _QWEN3,
    "Qwen3MoeForCausalLM": replace(_QWEN3, family="qwen3_moe"),
    "Qwen3NextForCausalLM": ModelClassTraits(
        family="qwen3_next",
        head_norms=True,
        gated_queries=True,
        attention_interval=4,
        shared_gate=True,
        head_dim=256,
    ),
    "GemmaForCausalLM": ModelClassTraits(family="gemma", tied=True, head_dim=256),
    "Gemma2ForCausalLM": _GEMMA2,
    "Gemma3ForCausalLM": _GEMMA3,
    "Phi3ForCausalLM": ModelClassTraits(family="phi3", windows=SlidingWindowRule.ALWAYS),
    "InternLM2ForCausalLM": ModelClassTraits(family="internlm2"),
    "InternLM3ForCausalLM": ModelClassTraits(family="internlm3"),
    "BaichuanForCausalLM": ModelClassTraits(family="baichuan"),
    "ChatGLMModel": ModelClassTraits(
        family="chatglm", biases=BiasedProjections.QKV, names={"kv_heads": "multi_query_group_num"}
    ),
    "GlmForCausalLM": ModelClassTraits(family="glm", biases=BiasedProjections.QKV, head_dim=128),
    "Glm4ForCausalLM": ModelClassTraits(
        family="glm4", norms=4, biases=BiasedProjections.QKV, head_dim=128
    ),
    "Glm4MoeForCausalLM": ModelClassTraits(
        family="glm4_moe", biases=BiasedProjections.QKV, head_dim=128
    ),
    "DeepseekV2ForCausalLM": ModelClassTraits(family="deepseek_v2"),
    "DeepseekV3ForCausalLM": ModelClassTraits(family="deepseek_v3"),
    "MiniCPM3ForCausalLM": ModelClassTraits(family="minicpm3"),
    "GptOssForCausalLM": ModelClassTraits(
        family="gpt_oss",
        biases=BiasedProjections.ATTENTION,
        windows=SlidingWindowRule.PATTERN,
        pattern=2,
        head_dim=64,
    ),
    "Ernie4_5_MoeForCausalLM": ModelClassTraits(family="ernie4_5_moe", tied=True),
    "BloomForCausalLM": ModelClassTraits(
        family="bloom", matrices=2, biases=BiasedProjections.ALL, tied=True, intermediate_factor=4
    ),
    "FalconForCausalLM": ModelClassTraits(
        family="falcon", matrices=2, tied=True, intermediate_factor=4
    ),
    "GPT2LMHeadModel": ModelClassTraits(
        family="gpt2", matrices=2, biases=BiasedProjections.ALL, tied=True, intermediate_factor=4
    ),
    "QWenLMHeadModel": ModelClassTraits(
        family="qwen", biases=BiasedProjections.QKV, doubled_intermediate=True
    ),
    "BertModel": _ENCODER,
    "XLMRobertaModel": replace(_ENCODER, family="xlm-roberta"),
    "XLMRobertaForSequenceClassification": replace(_ENCODER, family="xlm-roberta"),
}

#: Classes that hear or see and then write by a language model of another class, which is used where the
#: configuration of that model does not name its own.
MULTIMODAL_CLASSES: Mapping[str, str] = {
    "Qwen2VLForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen2_5_VLForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen2_5OmniForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen2AudioForConditionalGeneration": "Qwen2ForCausalLM",
    "Qwen3VLForConditionalGeneration": "Qwen3ForCausalLM",
    "Qwen3VLMoeForConditionalGeneration": "Qwen3MoeForCausalLM",
    "Gemma3ForConditionalGeneration": "Gemma3ForCausalLM",
    "LlavaForConditionalGeneration": "LlamaForCausalLM",
    "LlavaNextForConditionalGeneration": "LlamaForCausalLM",
    "LlavaOnevisionForConditionalGeneration": "Qwen2ForCausalLM",
    "InternVLChatModel": "InternLM2ForCausalLM",
    "CogVLMForCausalLM": "LlamaForCausalLM",
    "MiniCPMV": "Qwen2ForCausalLM",
    "GLM4VForCausalLM": "ChatGLMModel",
    "Glm4vForConditionalGeneration": "Glm4ForCausalLM",
    "KimiVLForConditionalGeneration": "DeepseekV3ForCausalLM",
    "Phi3VForCausalLM": "Phi3ForCausalLM",
}

#: Parts of a configuration that hold that of the language model.
NESTED_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")


def class_of_family(family: str) -> str:
    """The model class of a ``model_type``; empty if it is unknown."""
    known = family.removesuffix("_text").removesuffix("_vl")
    return next((name for name, build in MODEL_CLASSES.items() if build.family == known), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDimensions:
    """Input of the parameter count; the fields are those of ``Architecture``."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    context: int
    tied: bool
    latent: LatentAttention | None
    experts: MixtureOfExperts | None
    recurrent: LinearAttention | None


def count_architecture_parameters(
    size: ModelDimensions, build: ModelClassTraits
) -> tuple[int, int]:
    """Total parameters, and parameters active per token."""
    recurrent = size.recurrent.layers if size.recurrent else 0
    norm = size.hidden * (2 if build.biases is BiasedProjections.ALL else 1)
    shared = size.vocabulary * size.hidden * (1 if size.tied else 2)
    shared += norm + _other_embeddings(size, build)
    shared += size.layers * build.norms * norm
    shared += (size.layers - recurrent) * _attention_parameters(size, build)
    shared += recurrent * _recurrent_parameters(size)
    if size.experts is None:
        everything = shared + size.layers * _dense_mlp_parameters(size, build)
        return everything, everything
    mixed = size.layers - size.experts.dense_layers
    shared += size.experts.dense_layers * _dense_mlp_parameters(size, build)
    shared += mixed * _router_and_shared_experts(size, size.experts, build)
    each = _expert_parameters(size, size.experts, build)
    return (
        shared + mixed * size.experts.count * each,
        shared + mixed * size.experts.per_token * each,
    )


def _attention_parameters(size: ModelDimensions, build: ModelClassTraits) -> int:
    if size.latent is not None:
        return _latent_attention_parameters(size, size.latent)
    queries = size.heads * size.head_dim
    keys = size.kv_heads * size.head_dim
    gates = queries if build.gated_queries else 0
    total = size.hidden * (2 * queries + gates + 2 * keys)
    if build.biases is not BiasedProjections.NONE:
        total += queries + 2 * keys
    if build.biases in (BiasedProjections.ATTENTION, BiasedProjections.ALL):
        total += size.hidden
    if build.head_norms:
        total += 2 * size.head_dim
    # gpt-oss has one learned attention sink per head.
    return total + (size.heads if build.family == "gpt_oss" else 0)


def _latent_attention_parameters(size: ModelDimensions, latent: LatentAttention) -> int:
    query = size.heads * (latent.nope_head_dim + latent.rope_head_dim)
    rank = latent.query_rank
    queries = size.hidden * query if rank is None else rank * (size.hidden + 1 + query)
    keys = size.hidden * (latent.kv_rank + latent.rope_head_dim) + latent.kv_rank
    keys += latent.kv_rank * size.heads * (latent.nope_head_dim + latent.value_head_dim)
    return queries + keys + size.heads * latent.value_head_dim * size.hidden


def _recurrent_parameters(size: ModelDimensions) -> int:
    """Gated DeltaNet as in Qwen3-Next: queries, keys, values, gates; two values per head; convolution."""
    part = size.recurrent
    if part is None:
        return 0
    reads = size.hidden * (2 * part.key_width + 2 * part.value_width + 2 * part.value_heads)
    mixes = (2 * part.key_width + part.value_width) * part.kernel
    return (
        reads + mixes + 2 * part.value_heads + part.value_head_dim + part.value_width * size.hidden
    )


def _dense_mlp_parameters(size: ModelDimensions, build: ModelClassTraits) -> int:
    biases = size.intermediate + size.hidden if build.biases is BiasedProjections.ALL else 0
    return build.matrices * size.hidden * size.intermediate + biases


def _expert_parameters(
    size: ModelDimensions, experts: MixtureOfExperts, build: ModelClassTraits
) -> int:
    biases = 2 * experts.intermediate + size.hidden if build.family == "gpt_oss" else 0
    return build.matrices * size.hidden * experts.intermediate + biases


def _router_and_shared_experts(
    size: ModelDimensions, experts: MixtureOfExperts, build: ModelClassTraits
) -> int:
    router = size.hidden * experts.count + (experts.count if build.family == "gpt_oss" else 0)
    gate = size.hidden if build.shared_gate and experts.shared else 0
    return router + gate + build.matrices * size.hidden * experts.shared_intermediate


def _other_embeddings(size: ModelDimensions, build: ModelClassTraits) -> int:
    """Position embeddings of GPT-2 and encoders, norms of embeddings, the pooler."""
    norm = 2 * size.hidden
    if build.encoder:
        types = 2 if build.family == "bert" else 1
        positions = (size.context + types) * size.hidden
        # An encoder has its norms after each part, and none at the end: that place is the embeddings'.
        return positions + size.hidden * (size.hidden + 1)
    if build.family == "gpt2":
        return size.context * size.hidden
    return norm if build.family == "bloom" else 0
