"""Configurations of published models, as far as the tests need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.domain.common.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.common.resources import GIB, Bytes

QWEN15_7B: Mapping[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 11_008,
    "vocab_size": 151_936,
    "max_position_embeddings": 32_768,
    "torch_dtype": "bfloat16",
}
QWEN2_7B: Mapping[str, Any] = {
    **QWEN15_7B,
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18_944,
    "vocab_size": 152_064,
}
LLAMA3_8B: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
GEMMA3_27B: Mapping[str, Any] = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "hidden_size": 5376,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "intermediate_size": 21_504,
        "vocab_size": 262_208,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 131_072,
    },
    "torch_dtype": "bfloat16",
}
DEEPSEEK_V3: Mapping[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18_432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "vocab_size": 129_280,
    "max_position_embeddings": 163_840,
    "torch_dtype": "bfloat16",
}
MIXTRAL_8X7B: Mapping[str, Any] = {
    "architectures": ["MixtralForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32_000,
    "max_position_embeddings": 32_768,
    "torch_dtype": "bfloat16",
}
FALCON_7B: Mapping[str, Any] = {
    "architectures": ["FalconForCausalLM"],
    "num_hidden_layers": 32,
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "multi_query": True,
    "vocab_size": 65_024,
}
QWEN3_NEXT: Mapping[str, Any] = {
    "architectures": ["Qwen3NextForCausalLM"],
    "num_hidden_layers": 48,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 5120,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "vocab_size": 151_936,
    "max_position_embeddings": 262_144,
}
EVERY: Mapping[str, Mapping[str, Any]] = {
    "qwen1.5-7b": QWEN15_7B,
    "qwen2-7b": QWEN2_7B,
    "llama-3-8b": LLAMA3_8B,
    "gemma-3-27b": GEMMA3_27B,
    "deepseek-v3": DEEPSEEK_V3,
    "mixtral-8x7b": MIXTRAL_8X7B,
    "falcon-7b": FALCON_7B,
    "qwen3-next-80b": QWEN3_NEXT,
}

#: A card of 80 GiB, eight of them in one ring.
CARD = Chip(
    name="card-80",
    vendor="maker",
    kind=ChipKind.GPU,
    memory=Bytes(80 * GIB),
    torch_device="cuda",
    peak_rates={Dtype.BFLOAT16: 1e15},
    cards_per_node=8,
    rings=(tuple(range(8)),),
)
#: Two rings of four, and only these sizes.
TWO_RINGS = Chip(
    name="two-rings",
    vendor="maker",
    kind=ChipKind.NPU,
    memory=Bytes(32 * GIB),
    torch_device="npu",
    legal_request_sizes=(1, 2, 4, 8),
    cards_per_node=8,
    rings=((0, 1, 2, 3), (4, 5, 6, 7)),
)
#: Sixteen dies that are given out in pairs.
PAIRS = Chip(
    name="pairs",
    vendor="maker",
    kind=ChipKind.NPU,
    memory=Bytes(64 * GIB),
    torch_device="npu",
    cards_per_node=16,
    aligned_to=2,
    rings=(tuple(range(16)),),
)
