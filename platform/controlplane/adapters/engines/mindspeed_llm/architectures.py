"""What MindSpeed-LLM must be told of a model: it does not read ``config.json`` itself.

Written after its example scripts (``examples/mcore/{qwen3,qwen25,llama3}``) for dense models of three families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.ports.engines import ModelFacts

_NEEDED = (
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "max_position_embeddings",
    "vocab_size",
    "rms_norm_eps",
)
#: Vocabularies above this are Llama 3's, whose conversations are written in another way than Llama 2's.
_LLAMA_3_FROM = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How one family is called there, and the flags that all its models need."""

    model_type: str
    prompt: str
    flags: tuple[str, ...] = ()


FAMILIES: Mapping[str, Family] = {
    "Qwen2ForCausalLM": Family(model_type="qwen25", prompt="qwen", flags=("--add-qkv-bias",)),
    "Qwen3ForCausalLM": Family(
        model_type="qwen3",
        prompt="qwen3",
        flags=(
            *("--spec", "mindspeed_llm.tasks.models.spec.qwen3_spec", "layer_spec"),
            "--qk-layernorm",
        ),
    ),
    "LlamaForCausalLM": Family(model_type="llama2", prompt="llama2"),
}


def check(model: ModelFacts) -> Iterator[FieldFinding]:
    """Why MindSpeed-LLM cannot be told of the model."""
    if model.architecture not in FAMILIES:
        yield FieldFinding(
            field="model",
            message=f"{model.name} is a {model.architecture or 'model of unknown architecture'}, "
            f"which this product does not render for MindSpeed-LLM; it does {', '.join(FAMILIES)}",
        )
        return
    missing = [name for name in _NEEDED if not isinstance(model.config.get(name), (int, float))]
    if missing or _rope_base(model.config) is None:
        names = ", ".join([*missing, *(() if _rope_base(model.config) else ("rope_theta",))])
        yield FieldFinding(
            field="model",
            message=f"the config.json of {model.name} lacks {names}; MindSpeed-LLM must be told",
        )
    scaling = _rope_scaling(model.config)
    if scaling:
        yield FieldFinding(
            field="model",
            message=f"{model.name} stretches its positions ({scaling}), which this product does not "
            "render for MindSpeed-LLM; choose another engine",
        )


def prompt(model: ModelFacts) -> str:
    """The name of the way in which conversations are written."""
    if model.architecture == "LlamaForCausalLM" and model.config["vocab_size"] > _LLAMA_3_FROM:
        return "llama3"
    return FAMILIES[model.architecture].prompt


def flags(model: ModelFacts) -> list[str]:
    """The arguments that describe the model."""
    config, heads = model.config, model.config["num_attention_heads"]
    groups = config.get("num_key_value_heads") or heads
    told = [
        "--use-mcore-models",
        *FAMILIES[model.architecture].flags,
        *("--num-layers", str(config["num_hidden_layers"])),
        *("--hidden-size", str(config["hidden_size"])),
        *("--ffn-hidden-size", str(config["intermediate_size"])),
        *("--num-attention-heads", str(heads)),
        *("--kv-channels", str(config.get("head_dim") or config["hidden_size"] // heads)),
        *("--max-position-embeddings", str(config["max_position_embeddings"])),
        *("--make-vocab-size-divisible-by", "1"),
        *("--padded-vocab-size", str(config["vocab_size"])),
        *("--position-embedding-type", "rope", "--use-rotary-position-embeddings"),
        *("--rotary-base", str(int(_rope_base(config) or 0))),
        *("--normalization", "RMSNorm", "--norm-epsilon", f"{config['rms_norm_eps']:g}"),
        *("--swiglu", "--disable-bias-linear"),
        *("--hidden-dropout", "0", "--attention-dropout", "0"),
    ]
    if groups != heads:
        told += ["--group-query-attention", "--num-query-groups", str(groups)]
    if not config.get("tie_word_embeddings", False):
        told.append("--untie-embeddings-and-output-weights")
    return told


def _rope_base(config: Mapping[str, Any]) -> float | None:
    """``rope_theta``, which transformers moved into a group of its own."""
    base = config.get("rope_theta") or _rope(config).get("rope_theta")
    return base if isinstance(base, (int, float)) else None


def _rope_scaling(config: Mapping[str, Any]) -> str:
    rope = _rope(config) or config.get("rope_scaling") or {}
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    return "" if kind == "default" else kind


def _rope(config: Mapping[str, Any]) -> Mapping[str, Any]:
    rope = config.get("rope_parameters")
    return rope if isinstance(rope, Mapping) else {}
