"""Model versions: from a folder to something that can be trained and served.

::

    IMPORTING ──import──▶ READY ──delete──▶ DELETED ──remove──▶ REMOVED
        │                   │ ◀──restore──┘                      ▲
        │                   └──────────────remove (by rule)──────┘
        └──────fail─────▶ FAILED ──retry──▶ IMPORTING

A deleted version keeps its bytes for a while and can be had back. Of a removed one only the row is left:
what it was, what it was made from, and what was made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controlplane.domain.common.state_machine import StateMachine


class ModelState(StrEnum):
    IMPORTING = "importing"
    READY = "ready"
    FAILED = "failed"
    DELETED = "deleted"
    REMOVED = "removed"


class ModelEvent(StrEnum):
    IMPORT = "import"
    FAIL = "fail"
    RETRY = "retry"
    DELETE = "delete"
    RESTORE = "restore"
    REMOVE = "remove"


class Acceptance(StrEnum):
    """Whether a version may be deployed. Only quantized ones can be anything but accepted at first."""

    ACCEPTED = "accepted"
    #: It lost more than its tolerance allows.
    REJECTED = "rejected"
    #: Rejected by its figures, and accepted by a person with a reason.
    OVERRIDDEN = "overridden"


MODEL = StateMachine(
    name="model version",
    initial=ModelState.IMPORTING,
    transitions={
        (ModelState.IMPORTING, ModelEvent.IMPORT): ModelState.READY,
        (ModelState.IMPORTING, ModelEvent.FAIL): ModelState.FAILED,
        (ModelState.FAILED, ModelEvent.RETRY): ModelState.IMPORTING,
        (ModelState.READY, ModelEvent.DELETE): ModelState.DELETED,
        (ModelState.DELETED, ModelEvent.RESTORE): ModelState.READY,
        (ModelState.DELETED, ModelEvent.REMOVE): ModelState.REMOVED,
        (ModelState.READY, ModelEvent.REMOVE): ModelState.REMOVED,
    },
)


class ModelRefused(Exception):
    """The folder is not a model that can be registered; the message says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """What ``config.json`` says."""

    architecture: str
    context_length: int
    #: What the weights are quantized to, for example ``w8a8``; empty for plain ones.
    scheme: str = ""
    #: How quantized weights are written, for example ``compressed-tensors``; empty for plain ones.
    format: str = ""
    #: All of it.
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """How a model is built, as far as its ``config.json`` says; None and empty where it does not."""

    layers: int | None
    #: Width of a layer.
    hidden: int | None
    heads: int | None
    #: Heads that keys and values have; fewer than ``heads`` where they are shared.
    key_value_heads: int | None
    vocabulary: int | None
    #: Of the stored weights, for example ``bfloat16``.
    dtype: str
    #: For example ``qwen2``.
    family: str


#: Files that can run code when they are loaded; safetensors cannot.
UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".py")
#: Beyond these a figure is a mistake or a trick: no model comes near them.
LONGEST_CONTEXT = 2**31 - 1
MOST_PARAMETERS = 2**63 - 1
LONGEST_ARCHITECTURE = 120
#: Values of ``model_type`` that are published with ``auto_map`` and that transformers 5.17 reads without it.
NATIVE_MODEL_TYPES = frozenset(
    {
        "bloom",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "dots1",
        "ernie4_5",
        "ernie4_5_moe",
        "falcon",
        "glm",
        "glm4",
        "glm4_moe",
        "hunyuan_v1_dense",
        "hunyuan_v1_moe",
        "llama",
        "minicpm3",
        "mistral",
        "mixtral",
        "phi",
        "phi3",
        "phimoe",
        "qwen2",
        "qwen2_moe",
        "qwen3",
        "qwen3_moe",
        "seed_oss",
    }
)
_CONTEXT_FIELDS = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")


def read_config(config: Any) -> ModelConfig:
    """:raises ModelRefused: if it lacks what the product needs."""
    if not isinstance(config, Mapping):
        raise ModelRefused("config.json must hold a JSON object")
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise ModelRefused(
            'config.json must name the architecture, for example "architectures": ["Qwen2ForCausalLM"]'
        )
    kind = config.get("model_type")
    if config.get("auto_map") and not (isinstance(kind, str) and kind in NATIVE_MODEL_TYPES):
        raise ModelRefused(
            f"config.json asks for code of its own (auto_map), and no engine here knows its model_type "
            f"{str(kind)[:LONGEST_ARCHITECTURE]!r} without it"
        )
    architecture = architectures[0]
    if not isinstance(architecture, str) or not _is_plain(architecture):
        raise ModelRefused(
            f"the architecture must be a name of at most {LONGEST_ARCHITECTURE} characters, "
            f"got {str(architecture)[:LONGEST_ARCHITECTURE]!r}"
        )
    scheme, written = _quantization(config)
    return ModelConfig(
        architecture=architecture,
        context_length=_context_length(config),
        scheme=scheme,
        format=written,
        raw=without_code(config),
    )


def without_code(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same without the names of code that would be loaded with it."""
    return {key: value for key, value in config.items() if key != "auto_map"}


def check_tokenizer(config: Any) -> None:
    """:raises ModelRefused: if ``tokenizer_config.json`` names code without which its tokenizer cannot be read."""
    if isinstance(config, Mapping) and config.get("auto_map"):
        raise ModelRefused(
            "tokenizer_config.json asks for code of its own (auto_map), which is not run here; publish the "
            "tokenizer as a tokenizer.json and take auto_map out"
        )


#: Longest name of a scheme or format.
_LONGEST_SCHEME = 40


def _quantization(config: Mapping[str, Any]) -> tuple[str, str]:
    """Scheme and format of quantized weights, empty for plain ones.

    :raises ModelRefused: if it says that they are quantized, but not how.
    """
    given = config.get("quantization_config")
    if not isinstance(given, Mapping):
        told = _scheme_named(config.get("quantize"))
        return (told, "modelslim") if told else ("", "")
    method = _scheme_named(given.get("quant_method"))
    if not method:
        raise ModelRefused(
            "quantization_config must name its quant_method, for example "
            f'"compressed-tensors", got {str(given.get("quant_method"))[:_LONGEST_SCHEME]!r}'
        )
    groups = given.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    if isinstance(first, Mapping):
        return _scheme_of(first.get("weights"), first.get("input_activations")) or method, method
    bits = _bits(given.get("bits", given.get("w_bit")))
    return (f"w{bits}a16" if bits else method), method


def _scheme_of(weights: Any, activations: Any) -> str:
    """Of a group of compressed-tensors: ``w4a16`` and the like, ``fp8`` where numbers are floating; else empty."""
    given = weights if isinstance(weights, Mapping) else {}
    acts = activations if isinstance(activations, Mapping) else {}
    bits = _bits(given.get("num_bits"))
    if not bits:
        return ""
    if given.get("type") == "float":
        return f"fp{bits}"
    return f"w{bits}a{_bits(acts.get('num_bits')) or _PLAIN_BITS}"


#: Of what is not quantized, and the most that quantized numbers have.
_PLAIN_BITS = 16


def _bits(value: Any) -> int:
    """0 if it is no width of a number."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _PLAIN_BITS
    return value if good else 0


def _scheme_named(name: Any) -> str:
    """In lower case; empty if it is no name."""
    good = isinstance(name, str) and len(name) <= _LONGEST_SCHEME and name.isprintable()
    return str(name).lower() if good else ""


_SHAPE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "key_value_heads": ("num_key_value_heads",),
    "vocabulary": ("vocab_size",),
}


def read_shape(config: Any) -> ModelShape:
    """What a ``config.json`` tells of the model's build. Nothing in it is taken on trust: whatever is of
    another type than it should be counts as not said."""
    given: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    nested = given.get("text_config")
    text: Mapping[str, Any] = {**given, **nested} if isinstance(nested, Mapping) else given

    def figure(name: str) -> int | None:
        return next((text[key] for key in _SHAPE_FIELDS[name] if _is_count(text.get(key))), None)

    dtype = text.get("torch_dtype", text.get("dtype"))
    family = given.get("model_type")
    return ModelShape(
        layers=figure("layers"),
        hidden=figure("hidden"),
        heads=figure("heads"),
        key_value_heads=figure("key_value_heads"),
        vocabulary=figure("vocabulary"),
        dtype=dtype if isinstance(dtype, str) and _is_plain(dtype) else "",
        family=family if isinstance(family, str) and _is_plain(family) else "",
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_PARAMETERS


def read_licence(card: str) -> str:
    """The licence that the head of a model card (``README.md``) names; empty where it names none."""
    head, _, rest = card.partition("\n")
    if head.strip() != "---":
        return ""
    for line in rest.splitlines():
        if line.strip() == "---":
            break
        name, _, value = line.partition(":")
        value = value.strip().strip("\"'")
        if name.strip() in ("license", "licence") and value and _is_plain(value):
            return value
    return ""


def _is_plain(name: str) -> bool:
    return 0 < len(name) <= LONGEST_ARCHITECTURE and name.isprintable()


def _context_length(config: Mapping[str, Any]) -> int:
    """Positions that the model was made for; 0 where it does not say."""
    nested = config.get("text_config")
    text: Mapping[str, Any] = nested if isinstance(nested, Mapping) else config
    for name in _CONTEXT_FIELDS:
        length = text.get(name)
        if not isinstance(length, int) or isinstance(length, bool):
            continue
        if not 0 <= length <= LONGEST_CONTEXT:
            raise ModelRefused(f"{name} must be 0 to {LONGEST_CONTEXT}, got {length}")
        return length
    return 0


def check_files(names: frozenset[str]) -> None:
    """:raises ModelRefused: unless there are a configuration and safetensors weights."""
    if "config.json" not in names:
        raise ModelRefused("there is no config.json in the folder")
    if not any(name.endswith(".safetensors") for name in names):
        unsafe = sorted(name for name in names if name.endswith(UNSAFE_SUFFIXES))
        hint = f" ({unsafe[0]} can run code when loaded; convert it)" if unsafe else ""
        raise ModelRefused(f"there are no .safetensors weights in the folder{hint}")


def count_parameters(headers: Mapping[str, Any]) -> int:
    """Parameters named by a safetensors header: ``{tensor: {"shape": […]}}``.

    :raises ModelRefused: if a shape is none, or they are more than any model has.
    """
    total = 0
    for name, tensor in headers.items():
        if name == "__metadata__":
            continue
        size = 1
        for extent in tensor["shape"]:
            if not isinstance(extent, int) or not 0 <= extent <= MOST_PARAMETERS:
                raise ModelRefused(f"tensor {name!r} has an extent of {extent!r}")
            size *= extent
        total += size
        if total > MOST_PARAMETERS:
            raise ModelRefused(f"tensor {name!r} makes it more than {MOST_PARAMETERS} parameters")
    return total
