"""What llm-compressor is asked to do for each scheme.

::

    w8a8-smoothquant  move part of the activations' range into the weights, then GPTQ to 8-bit integers
    w4a16-awq         scale the channels that matter most, then round to 4-bit integers in groups
    fp8-dynamic       round weights to 8-bit floats by channel; activations as they come, no calibration
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compressed_tensors.utils import match_named_modules
from llmcompressor.modifiers.gptq import GPTQModifier
from llmcompressor.modifiers.quantization import QuantizationModifier
from llmcompressor.modifiers.transform.awq import AWQModifier
from llmcompressor.modifiers.transform.smoothquant import SmoothQuantModifier

from ninefold_runtime.exits import BadInput
from ninefold_runtime.specs import QuantizeSpec

_LAYERS = ["Linear"]
#: Sizes that serving engines have kernels for, the usual one first.
_GROUP_SIZES = (128, 64, 32, 16)


def quantized_layers(model: Any, *, ignore: Sequence[str]) -> dict[str, Any]:
    """The linear layers that lose precision, by name.

    :raises BadInput: if none is left.
    """
    layers = dict(match_named_modules(model, _LAYERS, list(ignore)))
    if not layers:
        raise BadInput(f"ignore leaves no linear layer to quantize: {', '.join(ignore)}")
    return layers


def group_size_for(spec: QuantizeSpec, widths: Sequence[int]) -> int | None:
    """Weights that share a scale; None where the scheme knows no groups.

    :raises BadInput: if the one that was asked for does not divide the layers' input widths, or none does.
    """
    if spec.scheme != "w4a16-awq":
        return None
    fitting = [size for size in _GROUP_SIZES if all(width % size == 0 for width in widths)]
    in_words = ", ".join(str(width) for width in sorted(set(widths)))
    if spec.group_size is None:
        if not fitting:
            raise BadInput(
                f"no group size of {', '.join(map(str, _GROUP_SIZES))} divides the layers' widths "
                f"{in_words}; leave the odd layers out by ignore"
            )
        return fitting[0]
    if any(width % spec.group_size for width in widths):
        right = ", ".join(map(str, fitting)) or "none of the usual ones"
        raise BadInput(
            f"group_size {spec.group_size} does not divide the layers' widths {in_words}; these do: {right}"
        )
    return spec.group_size


def recipe(spec: QuantizeSpec, *, group_size: int | None) -> list[Any]:
    """llm-compressor's modifiers, in the order in which they apply."""
    if spec.scheme == "w8a8-smoothquant":
        return [
            SmoothQuantModifier(smoothing_strength=spec.smoothing_strength),
            GPTQModifier(targets=_LAYERS, scheme="W8A8", ignore=spec.ignore),
        ]
    if spec.scheme == "w4a16-awq":
        weights = {
            "num_bits": 4,
            "type": "int",
            "strategy": "group",
            "group_size": group_size,
            "symmetric": False,
        }
        groups = {"group_0": {"targets": _LAYERS, "weights": weights}}
        return [
            AWQModifier(duo_scaling="both"),
            QuantizationModifier(config_groups=groups, ignore=spec.ignore),
        ]
    return [QuantizationModifier(targets=_LAYERS, scheme="FP8_DYNAMIC", ignore=spec.ignore)]


def needs_calibration(spec: QuantizeSpec) -> bool:
    return spec.scheme != "fp8-dynamic"
