"""The classes of architecture that are known, and where they differ from the usual decoder.

What is usual is Llama's: gated feed-forward parts, two norms a layer without bias, no bias in matrices.
Read in the modelling code of transformers 5; ``tests/engine`` counts each class there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Windows(StrEnum):
    """Which layers look back no further than ``sliding_window``, where ``layer_types`` does not say."""

    NEVER = "never"
    #: Every layer, if the configuration names a window.
    ALWAYS = "always"
    #: From layer ``max_window_layers`` on, if ``use_sliding_window`` is true.
    ASKED = "asked"
    #: All but every n-th, where n is ``sliding_window_pattern``.
    PATTERN = "pattern"


class Biases(StrEnum):
    """Which matrices have a bias."""

    NONE = "none"
    #: Of queries, keys and values.
    QKV = "qkv"
    #: All of attention.
    ATTENTION = "attention"
    #: All of attention, of feed-forward parts and of norms.
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What one class does its own way."""

    family: str
    matrices: int = 3
    norms: int = 2
    biases: Biases = Biases.NONE
    #: Queries and keys of each head are normed.
    head_norms: bool = False
    #: Queries carry a gate of their own size.
    gated_queries: bool = False
    tied: bool = False
    windows: Windows = Windows.NEVER
    #: Every n-th layer looks back all the way, where the configuration does not say.
    pattern: int = 0
    #: Where the configuration names no width: so many times that of a layer.
    widening: int = 0
    #: The configuration counts both halves of a gated part.
    doubled_intermediate: bool = False
    #: Where the configuration names no size of a head.
    head_dim: int = 0
    #: Every n-th layer attends, the others are recurrent; 0 without recurrent layers.
    attends_every: int = 0
    #: One switch scales the output of shared experts.
    shared_gate: bool = False
    #: Names of fields → names that this class writes.
    names: Mapping[str, str] | None = None
    #: False for encoders, which keep nothing of a token.
    decodes: bool = True
    #: Learnt positions and types of tokens, norms of embeddings and the pooler of an encoder.
    encoder: bool = False


_QWEN2 = Build(family="qwen2", biases=Biases.QKV, windows=Windows.ASKED)
_QWEN3 = Build(family="qwen3", head_norms=True, windows=Windows.ASKED, head_dim=128)
_GEMMA2 = Build(
    family="gemma2", norms=4, tied=True, windows=Windows.PATTERN, pattern=2, head_dim=256
)
_GEMMA3 = replace(_GEMMA2, family="gemma3", pattern=6, head_norms=True)
_ENCODER = Build(
    family="bert", matrices=2, biases=Biases.ALL, tied=True, decodes=False, encoder=True
)

BUILDS: Mapping[str, Build] = {
    "LlamaForCausalLM": Build(family="llama"),
    "MistralForCausalLM": Build(family="mistral", windows=Windows.ALWAYS),
    "MixtralForCausalLM": Build(family="mixtral", windows=Windows.ALWAYS),
    "Qwen2ForCausalLM": _QWEN2,
    "Qwen2MoeForCausalLM": replace(_QWEN2, family="qwen2_moe", shared_gate=True),
    "Qwen3ForCausalLM": _QWEN3,
    "Qwen3MoeForCausalLM": replace(_QWEN3, family="qwen3_moe"),
    "Qwen3NextForCausalLM": Build(
        family="qwen3_next",
        head_norms=True,
        gated_queries=True,
        attends_every=4,
        shared_gate=True,
        head_dim=256,
    ),
    "GemmaForCausalLM": Build(family="gemma", tied=True, head_dim=256),
    "Gemma2ForCausalLM": _GEMMA2,
    "Gemma3ForCausalLM": _GEMMA3,
    "Phi3ForCausalLM": Build(family="phi3", windows=Windows.ALWAYS),
    "InternLM2ForCausalLM": Build(family="internlm2"),
    "InternLM3ForCausalLM": Build(family="internlm3"),
    "BaichuanForCausalLM": Build(family="baichuan"),
    "ChatGLMModel": Build(
        family="chatglm", biases=Biases.QKV, names={"kv_heads": "multi_query_group_num"}
    ),
    "GlmForCausalLM": Build(family="glm", biases=Biases.QKV, head_dim=128),
    "Glm4ForCausalLM": Build(family="glm4", norms=4, biases=Biases.QKV, head_dim=128),
    "Glm4MoeForCausalLM": Build(family="glm4_moe", biases=Biases.QKV, head_dim=128),
    "DeepseekV2ForCausalLM": Build(family="deepseek_v2"),
    "DeepseekV3ForCausalLM": Build(family="deepseek_v3"),
    "MiniCPM3ForCausalLM": Build(family="minicpm3"),
    "GptOssForCausalLM": Build(
        family="gpt_oss",
        biases=Biases.ATTENTION,
        windows=Windows.PATTERN,
        pattern=2,
        head_dim=64,
    ),
    "Ernie4_5_MoeForCausalLM": Build(family="ernie4_5_moe", tied=True),
    "BloomForCausalLM": Build(family="bloom", matrices=2, biases=Biases.ALL, tied=True, widening=4),
    "FalconForCausalLM": Build(family="falcon", matrices=2, tied=True, widening=4),
    "GPT2LMHeadModel": Build(family="gpt2", matrices=2, biases=Biases.ALL, tied=True, widening=4),
    "QWenLMHeadModel": Build(family="qwen", biases=Biases.QKV, doubled_intermediate=True),
    "BertModel": _ENCODER,
    "XLMRobertaModel": replace(_ENCODER, family="xlm-roberta"),
    "XLMRobertaForSequenceClassification": replace(_ENCODER, family="xlm-roberta"),
}

#: Classes that hear or see and then write by a language model of another class, which is used where the
#: configuration of that model does not name its own.
WRAPPERS: Mapping[str, str] = {
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
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


def class_of_family(family: str) -> str:
    """The class of a ``model_type``; empty where none is known."""
    known = family.removesuffix("_text").removesuffix("_vl")
    return next((name for name, build in BUILDS.items() if build.family == known), "")
