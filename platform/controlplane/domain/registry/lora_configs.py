"""``adapter_config.json`` of PEFT: what an engine must know of a LoRA adapter before it serves it.

Fields: https://huggingface.co/docs/peft/package_reference/lora#peft.LoraConfig
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.reasons import NONE, ReasonedValueError

#: Written by PEFT beside the weights.
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
#: Where a fine-tuning stores the adapter beside the merged weights; empty: the version is the adapter.
ADAPTER_FOLDERS = ("adapter/", "")
#: Fields of variants that change more than the product of two matrices does → the name of the variant.
_VARIANTS = {
    "use_dora": "DoRA",
    "modules_to_save": "modules_to_save",
    "lora_bias": "lora_bias",
    "alora_invocation_tokens": "aLoRA",
    "layer_replication": "layer_replication",
    "use_qalora": "QALoRA",
    "trainable_token_indices": "trainable_token_indices",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraConfigFacts:
    #: Greatest rank of its matrices, those with a rank of their own included.
    rank: int
    #: Variants of LoRA that it uses beside the plain one.
    variants: frozenset[str]


def adapter_files(tree: Mapping[str, str]) -> dict[str, str]:
    """The paths of the configuration and the weights of a version's LoRA adapter by name; empty if it has none.

    :param tree: path → digest of the files of the version.
    """
    for folder in ADAPTER_FOLDERS:
        paths = {name: folder + name for name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS)}
        if tree.keys() >= set(paths.values()):
            return paths
    return {}


def parse_lora_config(config: object) -> LoraConfigFacts:
    """The facts in the content of ``adapter_config.json``.

    :raises ValueError: if it is not that of a LoRA adapter.
    """
    fields: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    kind, rank = fields.get("peft_type"), fields.get("r")
    pattern = fields.get("rank_pattern") or {}
    ranks = [rank, *(pattern.values() if isinstance(pattern, Mapping) else ())]
    if kind != "LORA" or not all(type(each) is int and each > 0 for each in ranks):
        raise ReasonedValueError(
            "lora_adapter.config.invalid",
            "{file} must have peft_type LORA and ranks of at least 1, got {kind} and {ranks}",
            file=ADAPTER_CONFIG,
            kind=str(kind or NONE),
            ranks=", ".join(map(str, ranks)),
        )
    variants = {name for field, name in _VARIANTS.items() if fields.get(field)}
    if fields.get("bias", "none") != "none":
        variants.add("bias")
    return LoraConfigFacts(rank=max(ranks), variants=frozenset(variants))
