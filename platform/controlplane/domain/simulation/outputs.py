"""What simulated processes hand over: files of the right form with nothing real in them.

Weights are hollow: the header of a safetensors file names every tensor of the architecture, so that its
parameters are counted as a real model's are, and no tensor follows.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

from controlplane.domain.simulation.curves import metrics
from controlplane.domain.simulation.lives import Life

#: The shape of Qwen2.5-7B-Instruct, as its public config.json gives it.
CONFIG: Mapping[str, object] = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 152064,
}
_NOTE = "Made by a simulated cluster: the header names every tensor, and there are no weights.\n"


def hollow_model() -> dict[str, bytes]:
    """A model of seven billion parameters in a few kilobytes, by path."""
    return {
        "README.md": _NOTE.encode(),
        "config.json": json.dumps(CONFIG, indent=2).encode(),
        "model.safetensors": _header(),
    }


def made(life: Life, *, role: str) -> tuple[str, dict[str, bytes], dict[str, float]]:
    """The kind, files and metrics of the manifest with which it ends well."""
    match role:
        case "trainer" | "quantizer":
            return "model", hollow_model(), metrics(life)
        case "evaluator":
            found = metrics(life)
            return "report", {"report.json": json.dumps(found).encode()}, found
        case _:
            return "outputs", {"summary.txt": _NOTE.encode()}, {}


def _header() -> bytes:
    hidden, wide, vocabulary, layers = 3584, 18944, 152064, 28
    keys = 512
    tensors: dict[str, list[int]] = {
        "model.embed_tokens.weight": [vocabulary, hidden],
        "lm_head.weight": [vocabulary, hidden],
        "model.norm.weight": [hidden],
    }
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        tensors |= {
            f"{prefix}.input_layernorm.weight": [hidden],
            f"{prefix}.post_attention_layernorm.weight": [hidden],
            f"{prefix}.mlp.down_proj.weight": [hidden, wide],
            f"{prefix}.mlp.gate_proj.weight": [wide, hidden],
            f"{prefix}.mlp.up_proj.weight": [wide, hidden],
            f"{prefix}.self_attn.o_proj.weight": [hidden, hidden],
        }
        for name, size in (("q", hidden), ("k", keys), ("v", keys)):
            tensors[f"{prefix}.self_attn.{name}_proj.weight"] = [size, hidden]
            tensors[f"{prefix}.self_attn.{name}_proj.bias"] = [size]
    header = json.dumps(
        {
            name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]}
            for name, shape in tensors.items()
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header
