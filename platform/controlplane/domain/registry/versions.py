"""Model versions: states, and validation of configuration, weights and tokenizer of a model.

::

    IMPORTING ──import──▶ READY ──delete──▶ DELETED ──remove──▶ REMOVED
        │                   │ ◀──restore──┘                      ▲
        │                   └──────────────remove (by rule)──────┘
        └──────fail─────▶ FAILED ──retry──▶ IMPORTING

A deleted version keeps its bytes for a while and can be restored. Of a removed version only the row is left:
its facts and its lineage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controlplane.domain.common.reasons import ReasonedError
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


class GateDecision(StrEnum):
    """The deployment gate of a version. Versions that are not quantized start as accepted."""

    ACCEPTED = "accepted"
    #: Its quality loss exceeds the tolerance.
    REJECTED = "rejected"
    #: Rejected by its metrics, then accepted by a user with a reason.
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


class ModelRefused(ReasonedError):
    """The files are not a model that can be registered; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """The parts of ``config.json`` that the product uses."""

    architecture: str
    context_length: int
    #: Quantization scheme, for example ``w8a8``; empty if not quantized.
    scheme: str = ""
    #: Format of quantized weights, for example ``compressed-tensors``; empty if not quantized.
    format: str = ""
    #: The whole configuration.
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Architecture facts from ``config.json``; None and empty if it does not state them."""

    layers: int | None
    #: Hidden size.
    hidden: int | None
    heads: int | None
    #: Key-value heads; fewer than ``heads`` with grouped-query attention.
    key_value_heads: int | None
    vocabulary: int | None
    #: Of the stored weights, for example ``bfloat16``.
    dtype: str
    #: For example ``qwen2``.
    family: str


CONFIG_FILE = "config.json"
#: Describes a pipeline of several models, as diffusers writes it.
PIPELINE_FILE = "model_index.json"
#: File formats that can execute code when loaded; safetensors cannot.
UNSAFE_SUFFIXES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".py")
#: Upper limits that no model reaches; larger values are errors or attacks.
MAX_CONTEXT_LENGTH = 2**31 - 1
MAX_PARAMETERS = 2**63 - 1
MAX_ARCHITECTURE_LENGTH = 120
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


def parse_model_config(config: Any, *, path: str = CONFIG_FILE) -> ModelConfig:
    """The configuration in a file of that path.

    :raises ModelRefused: if a required field is missing or invalid.
    """
    if path == PIPELINE_FILE:
        return _parse_pipeline_index(config)
    if not isinstance(config, Mapping):
        raise ModelRefused(
            "model_version.config.not_an_object", "config.json must be a JSON object"
        )
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise ModelRefused(
            "model_version.config.architecture_missing",
            'config.json must name the architecture, for example "architectures": '
            '["Qwen2ForCausalLM"]',
        )
    kind = config.get("model_type")
    if config.get("auto_map") and not (isinstance(kind, str) and kind in NATIVE_MODEL_TYPES):
        raise ModelRefused(
            "model_version.config.custom_code",
            "config.json requires custom code (auto_map), and no engine supports its "
            "model_type {model_type} without it",
            model_type=repr(str(kind)[:MAX_ARCHITECTURE_LENGTH]),
        )
    architecture = architectures[0]
    if not isinstance(architecture, str) or not _is_printable_name(architecture):
        raise ModelRefused(
            "model_version.architecture.too_long",
            "the architecture must be a name of at most {limit} characters, got {architecture}",
            limit=MAX_ARCHITECTURE_LENGTH,
            architecture=repr(str(architecture)[:MAX_ARCHITECTURE_LENGTH]),
        )
    scheme, written = _parse_quantization(config)
    return ModelConfig(
        architecture=architecture,
        context_length=_context_length(config),
        scheme=scheme,
        format=written,
        raw=strip_remote_code(config),
    )


def _parse_pipeline_index(index: Any) -> ModelConfig:
    """The configuration of a diffusers pipeline; one whose class is not part of diffusers is refused."""
    name = index.get("_class_name") if isinstance(index, Mapping) else None
    if not isinstance(name, str) or not _is_printable_name(name):
        raise ModelRefused(
            "model_version.pipeline.class_missing",
            "model_index.json must name a pipeline of diffusers as its _class_name, got {value}",
            value=repr(str(name)[:MAX_ARCHITECTURE_LENGTH]),
        )
    return ModelConfig(architecture=name, context_length=0, raw=dict(index))


def strip_remote_code(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without ``auto_map``, which names code to load."""
    return {key: value for key, value in config.items() if key != "auto_map"}


def check_tokenizer(config: Any) -> None:
    """:raises ModelRefused: if ``tokenizer_config.json`` requires remote code."""
    if isinstance(config, Mapping) and config.get("auto_map"):
        raise ModelRefused(
            "model_version.tokenizer.custom_code",
            "tokenizer_config.json requires custom code (auto_map), which is not run "
            "here; publish the tokenizer as a tokenizer.json and remove auto_map",
        )


#: Longest name of a scheme or format.
_MAX_SCHEME_LENGTH = 40


def _parse_quantization(config: Mapping[str, Any]) -> tuple[str, str]:
    """Scheme and format of quantized weights, empty for weights that are not quantized.

    :raises ModelRefused: if ``quantization_config`` does not name its method.
    """
    given = config.get("quantization_config")
    if not isinstance(given, Mapping):
        scheme = _normalise_scheme(config.get("quantize"))
        return (scheme, "modelslim") if scheme else ("", "")
    method = _normalise_scheme(given.get("quant_method"))
    if not method:
        raise ModelRefused(
            "model_version.quantization.method_missing",
            "quantization_config must name its quant_method, for example "
            '"compressed-tensors", got {method}',
            method=repr(str(given.get("quant_method"))[:_MAX_SCHEME_LENGTH]),
        )
    groups = given.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    if isinstance(first, Mapping):
        return _scheme_from_group(
            first.get("weights"), first.get("input_activations")
        ) or method, method
    bits = _parse_bits(given.get("bits", given.get("w_bit")))
    return (f"w{bits}a16" if bits else method), method


def _scheme_from_group(weights: Any, activations: Any) -> str:
    """Scheme of a compressed-tensors group: ``w4a16`` and the like, ``fp8`` for floating point; else empty."""
    given = weights if isinstance(weights, Mapping) else {}
    activations = activations if isinstance(activations, Mapping) else {}
    bits = _parse_bits(given.get("num_bits"))
    if not bits:
        return ""
    if given.get("type") == "float":
        return f"fp{bits}"
    return f"w{bits}a{_parse_bits(activations.get('num_bits')) or _PLAIN_BITS}"


#: Bits of values that are not quantized, and the most that quantized values have.
_PLAIN_BITS = 16


def _parse_bits(value: Any) -> int:
    """The bit width; 0 if the value is not a valid one."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _PLAIN_BITS
    return value if good else 0


def _normalise_scheme(name: Any) -> str:
    """The name in lower case; empty if it is not a valid name."""
    good = isinstance(name, str) and len(name) <= _MAX_SCHEME_LENGTH and name.isprintable()
    return str(name).lower() if good else ""


_SHAPE_FIELDS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "key_value_heads": ("num_key_value_heads",),
    "vocabulary": ("vocab_size",),
}


def parse_model_shape(config: Any) -> ModelShape:
    """Architecture facts from ``config.json``. The content is untrusted: values of the wrong type count as
    missing.
    """
    given: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
    nested = given.get("text_config")
    text: Mapping[str, Any] = {**given, **nested} if isinstance(nested, Mapping) else given

    def count_of(name: str) -> int | None:
        return next((text[key] for key in _SHAPE_FIELDS[name] if _is_count(text.get(key))), None)

    dtype = text.get("torch_dtype", text.get("dtype"))
    family = given.get("model_type")
    return ModelShape(
        layers=count_of("layers"),
        hidden=count_of("hidden"),
        heads=count_of("heads"),
        key_value_heads=count_of("key_value_heads"),
        vocabulary=count_of("vocabulary"),
        dtype=dtype if isinstance(dtype, str) and _is_printable_name(dtype) else "",
        family=family if isinstance(family, str) and _is_printable_name(family) else "",
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_PARAMETERS


def parse_licence(card: str) -> str:
    """The licence named in the front matter of a model card (``README.md``); empty if it names none."""
    head, _, rest = card.partition("\n")
    if head.strip() != "---":
        return ""
    for line in rest.splitlines():
        if line.strip() == "---":
            break
        name, _, value = line.partition(":")
        value = value.strip().strip("\"'")
        if name.strip() in ("license", "licence") and value and _is_printable_name(value):
            return value
    return ""


def _is_printable_name(name: str) -> bool:
    return 0 < len(name) <= MAX_ARCHITECTURE_LENGTH and name.isprintable()


def _context_length(config: Mapping[str, Any]) -> int:
    """Maximum positions; 0 if the configuration does not state them."""
    nested = config.get("text_config")
    text: Mapping[str, Any] = nested if isinstance(nested, Mapping) else config
    for name in _CONTEXT_FIELDS:
        length = text.get(name)
        if not isinstance(length, int) or isinstance(length, bool):
            continue
        if not 0 <= length <= MAX_CONTEXT_LENGTH:
            raise ModelRefused(
                "model_version.context.out_of_range",
                "{field} must be 0 to {limit}, got {value}",
                field=name,
                limit=MAX_CONTEXT_LENGTH,
                value=length,
            )
        return length
    return 0


def config_path(names: Collection[str]) -> str:
    """The file that describes a model: ``config.json``, or ``model_index.json`` of a pipeline of models.

    :raises ModelRefused: if there is neither.
    """
    for name in (CONFIG_FILE, PIPELINE_FILE):
        if name in names:
            return name
    raise ModelRefused(
        "model_version.config.missing",
        "there is no config.json in the folder, and no model_index.json of a diffusers pipeline",
    )


def weight_paths(names: Collection[str]) -> list[str]:
    """The safetensors files of a model: in its folder, those of a pipeline in the folders of its parts."""
    parts = config_path(names) == PIPELINE_FILE
    return sorted(
        name for name in names if name.endswith(".safetensors") and (parts or "/" not in name)
    )


def check_files(names: Collection[str]) -> None:
    """:raises ModelRefused: unless there are a file that describes the model and safetensors weights."""
    if not weight_paths(names):
        unsafe = sorted(name for name in names if name.endswith(UNSAFE_SUFFIXES))
        if unsafe:
            raise ModelRefused(
                "model_version.weights.unsafe_format",
                "there are no .safetensors weights in the folder; {file} can run code when it is "
                "loaded: convert it to .safetensors",
                file=unsafe[0],
            )
        raise ModelRefused(
            "model_version.weights.missing", "there are no .safetensors weights in the folder"
        )


def count_safetensors_parameters(headers: Mapping[str, Any]) -> int:
    """Parameters named by a safetensors header: ``{tensor: {"shape": […]}}``.

    :raises ModelRefused: if a shape is invalid, or the total is implausible.
    """
    total = 0
    for name, tensor in headers.items():
        if name == "__metadata__":
            continue
        size = 1
        for extent in tensor["shape"]:
            if not isinstance(extent, int) or not 0 <= extent <= MAX_PARAMETERS:
                raise ModelRefused(
                    "model_version.tensor.invalid_shape",
                    "tensor {tensor} has the invalid dimension {dimension}",
                    tensor=repr(name),
                    dimension=repr(extent),
                )
            size *= extent
        total += size
        if total > MAX_PARAMETERS:
            raise ModelRefused(
                "model_version.parameters.too_many",
                "tensor {tensor} brings the total above {limit} parameters",
                tensor=repr(name),
                limit=MAX_PARAMETERS,
            )
    return total
