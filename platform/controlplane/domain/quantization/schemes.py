"""Quantization schemes, and whether a model can be quantized by one or loaded by an engine.

A *scheme* says how many bits weights and activations keep; a *format* says how they are written. An engine that
does not read the format cannot load the model, whatever the scheme.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.reasons import NONE, UNKNOWN, Reason
from controlplane.domain.common.spec_fields import FieldFinding

#: The format that llm-compressor writes and that vLLM, SGLang and transformers read.
COMPRESSED_TENSORS = "compressed-tensors"
#: Group sizes that serving engines have kernels for, the default first.
GROUP_SIZES = (128, 64, 32, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationScheme:
    """A quantization scheme as a spec requests it."""

    name: str
    #: Short name for quantized versions, for example ``w8a8``.
    short: str
    weight_bits: int
    activation_bits: int
    #: Whether calibration rows are run through the model to find the scales.
    calibrated: bool


SCHEMES: Mapping[str, QuantizationScheme] = {
    scheme.name: scheme
    for scheme in (
        QuantizationScheme(
            name="w8a8-smoothquant",
            short="w8a8",
            weight_bits=8,
            activation_bits=8,
            calibrated=True,
        ),
        QuantizationScheme(
            name="w4a16-awq", short="w4a16", weight_bits=4, activation_bits=16, calibrated=True
        ),
        QuantizationScheme(
            name="fp8-dynamic", short="fp8", weight_bits=8, activation_bits=8, calibrated=False
        ),
    )
}


def is_calibrated(scheme: Any) -> bool:
    """Whether the scheme needs calibration rows; False for an unknown scheme."""
    known = SCHEMES.get(scheme) if isinstance(scheme, str) else None
    return known is not None and known.calibrated


def check_not_quantized(*, name: str, scheme: str, reason: str) -> tuple[FieldFinding, ...]:
    """A finding if the model called ``name`` is quantized.

    :param reason: what requires weights that are not.
    """
    if not scheme:
        return ()
    message = Reason(
        "quantization.model.already_quantized",
        "{model} is already quantized to {scheme}; {reason}: choose the version "
        "before quantization",
        model=name,
        scheme=scheme,
        reason=reason,
    )
    return (FieldFinding(field="model", message=message),)


def check_weight_format_loadable(
    *, name: str, scheme: str, written: str, engine: str, formats: Collection[str]
) -> tuple[FieldFinding, ...]:
    """A finding if the engine does not read the weight format ``written``."""
    if not written or written in formats:
        return ()
    reads = ", ".join(sorted(formats)) or NONE
    message = Reason(
        "quantization.format.not_supported",
        "{model} is quantized to {scheme} in the format {format}; {engine} "
        "supports {formats}: choose another engine, or a version in a supported "
        "format",
        model=name,
        scheme=scheme or UNKNOWN,
        format=written,
        engine=engine,
        formats=reads,
    )
    return (FieldFinding(field="model", message=message),)


def input_widths(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Input widths of the linear layers of a decoder, as far as its ``config.json`` states them."""
    nested = config.get("text_config")
    text = {**config, **nested} if isinstance(nested, Mapping) else config

    def count(name: str) -> int | None:
        value = text.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return value if whole else None

    hidden, heads = count("hidden_size"), count("num_attention_heads")
    head = count("head_dim") or (hidden // heads if hidden and heads else None)
    attention = heads * head if heads and head else None
    known = (hidden, attention, count("intermediate_size"), count("moe_intermediate_size"))
    return tuple(sorted({width for width in known if width is not None}))


def check_group_size(
    *, scheme: str, group_size: int | None, config: Mapping[str, Any]
) -> tuple[FieldFinding, ...]:
    """A finding if the layers of that ``config.json`` cannot be divided into groups of that size."""
    widths = input_widths(config)
    if scheme != "w4a16-awq" or not widths:
        return ()
    fitting = [size for size in GROUP_SIZES if all(width % size == 0 for width in widths)]
    formatted = ", ".join(map(str, widths))
    right = ", ".join(map(str, fitting))
    if group_size is None:
        if fitting:
            return ()
        message = Reason(
            "quantization.group_size.no_divisor",
            "none of the group sizes {sizes} divides the layer widths {widths} of "
            "the model; use a scheme without groups",
            sizes=", ".join(map(str, GROUP_SIZES)),
            widths=formatted,
        )
        return (FieldFinding(field="group_size", message=message),)
    odd = [width for width in widths if width % group_size]
    if not odd:
        return ()
    message = Reason(
        "quantization.group_size.not_a_divisor",
        "group_size must divide the layer widths of the model ({widths}), got "
        "{group_size}; valid values: {valid}",
        widths=formatted,
        group_size=group_size,
        valid=right or "none of the usual sizes",
    )
    return (FieldFinding(field="group_size", message=message),)
