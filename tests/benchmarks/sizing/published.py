"""What others measured and published, for comparison with what is estimated.

Each source is public; figures are as printed there. Where a page says GB it means 2³⁰ bytes: only so do its
figures hold the weights alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

QWEN25 = "QwenLM/Qwen2.5, docs/source/benchmark/speed_benchmark.rst (A100, Transformers 4.46, Flash Attention)"
QWEN = (
    "QwenLM/Qwen, README.md, Profiling of Memory and Speed (A100, Flash Attention, LoRA of rank 64)"
)
VLLM = "vllm-project/vllm, pull request 10511 (startup log of Meta-Llama-3-8B)"
VLLM_AWQ = "vllm-project/vllm, issue 13882 (startup log of Qwen2.5-7B-Instruct-AWQ)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One figure."""

    #: Of the shapes below.
    model: str
    #: ``weights``, ``serve`` or ``train``.
    what: str
    gib: float
    source: str
    #: Tokens of prompt and answer, or of a row.
    context: int = 0
    scheme: str = "bfloat16"
    tensor: int = 1
    #: Of an adapter, where one is trained.
    rank: int | None = None
    adapter_base: str = ""


def _qwen2(
    layers: int, hidden: int, heads: int, kv: int, wide: int, vocabulary: int, tied: bool
) -> Any:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "intermediate_size": wide,
        "vocab_size": vocabulary,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 32_768,
        "torch_dtype": "bfloat16",
    }


#: As in the models' own ``config.json``.
SHAPES: Mapping[str, Mapping[str, Any]] = {
    "Qwen2.5-0.5B": _qwen2(24, 896, 14, 2, 4864, 151_936, True),
    "Qwen2.5-1.5B": _qwen2(28, 1536, 12, 2, 8960, 151_936, True),
    "Qwen2.5-7B": _qwen2(28, 3584, 28, 4, 18_944, 152_064, False),
    "Qwen2.5-14B": _qwen2(48, 5120, 40, 8, 13_824, 152_064, False),
    "Qwen2.5-32B": _qwen2(64, 5120, 40, 8, 27_648, 152_064, False),
    "Qwen2.5-72B": _qwen2(80, 8192, 64, 8, 29_568, 152_064, False),
    "Qwen-7B": {
        "architectures": ["QWenLMHeadModel"],
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "intermediate_size": 22_016,
        "vocab_size": 151_936,
        "seq_length": 8192,
        "kv_channels": 128,
    },
    "Llama-3-8B": {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14_336,
        "vocab_size": 128_256,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
    },
}

#: Every run writes 2,048 tokens after its prompt.
_WRITTEN = 2048


def _served(
    model: str, *points: tuple[int, float], scheme: str = "bfloat16"
) -> tuple[Published, ...]:
    return tuple(
        Published(
            model=model,
            what="serve",
            gib=gib,
            source=QWEN25,
            context=prompt + _WRITTEN,
            scheme=scheme,
        )
        for prompt, gib in points
    )


def _trained(base: str, *points: tuple[int, float]) -> tuple[Published, ...]:
    return tuple(
        Published(
            model="Qwen-7B",
            what="train",
            gib=gib,
            source=QWEN,
            context=length,
            rank=64,
            adapter_base=base,
        )
        for length, gib in points
    )


PUBLISHED: tuple[Published, ...] = (
    Published(model="Llama-3-8B", what="weights", gib=14.96, source=VLLM),
    Published(model="Llama-3-8B", what="weights", gib=7.48, source=VLLM, tensor=2),
    Published(model="Qwen2.5-7B", what="weights", gib=5.20, source=VLLM_AWQ, scheme="w4a16-awq"),
    *_served("Qwen2.5-0.5B", (1, 0.97), (6144, 1.23), (14_336, 1.60), (30_720, 2.34)),
    *_served("Qwen2.5-1.5B", (1, 2.95), (6144, 3.43), (14_336, 4.16), (30_720, 5.62)),
    *_served("Qwen2.5-7B", (30_720, 19.97)),
    *_served("Qwen2.5-14B", (1, 28.08), (6144, 29.50), (14_336, 31.95), (30_720, 36.85)),
    *_served("Qwen2.5-32B", (1, 61.58), (6144, 63.72), (14_336, 67.31), (30_720, 74.47)),
    *_served("Qwen2.5-72B", (1, 136.20), (6144, 140.00)),
    *_served("Qwen2.5-7B", (14_336, 7.92), (30_720, 10.98), scheme="w4a16-awq"),
    *_served("Qwen2.5-14B", (1, 9.79), (30_720, 18.57), scheme="w4a16-awq"),
    *_served("Qwen2.5-32B", (1, 18.67), (30_720, 31.56), scheme="w4a16-awq"),
    *_served("Qwen2.5-72B", (1, 39.44), (6144, 42.13), scheme="w4a16-awq"),
    *_trained("bfloat16", (256, 20.1), (1024, 21.5), (2048, 23.8), (4096, 29.7), (8192, 36.6)),
    *_trained("w4a16-gptq", (256, 11.5), (1024, 12.3), (2048, 13.9), (4096, 16.9), (8192, 23.5)),
)
