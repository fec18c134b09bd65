"""How many bits a stored weight takes, its scales included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import FieldFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A way to write weights. What is not quantized stays in 16 bits."""

    name: str
    bits: float
    #: Weights that share a scale; 0 is one scale for each row of a matrix.
    group: int = 0
    scale_bits: float = 16
    zero_bits: float = 0
    #: Only the experts of a mixture are quantized.
    experts_only: bool = False
    #: Matrices that read and write tokens are written that way too.
    embeddings: bool = False

    def bits_per_weight(self, *, row: int) -> float:
        """``bits + (scale + zero) / group``; for example AWQ of groups of 128: 4 + (16 + 4) / 128 = 4.156
        (Lin et al. 2023, arXiv 2306.00978)."""
        return self.bits + (self.scale_bits + self.zero_bits) / (self.group or row)


_PLAIN = {
    "float32": Scheme(name="float32", bits=32, scale_bits=0, embeddings=True),
    "bfloat16": Scheme(name="bfloat16", bits=16, scale_bits=0, embeddings=True),
    "float16": Scheme(name="float16", bits=16, scale_bits=0, embeddings=True),
}
_INT8 = Scheme(name="w8a8", bits=8, scale_bits=16)
_INT4 = Scheme(name="w4a16", bits=4, group=128, zero_bits=4)
_FP8 = Scheme(name="fp8", bits=8, scale_bits=32)
SCHEMES: Mapping[str, Scheme] = {
    **_PLAIN,
    "w8a8": _INT8,
    "w8a8-smoothquant": _INT8,
    "w8a16": _INT8,
    "w4a16": _INT4,
    "w4a16-awq": _INT4,
    "w4a16-gptq": _INT4,
    "fp8": _FP8,
    "fp8-dynamic": _FP8,
    #: DeepSeek-V3: one float32 scale for each block of 128 × 128 (arXiv 2412.19437, section 3.3).
    "fp8-block": Scheme(name="fp8-block", bits=8, group=128 * 128, scale_bits=32),
    #: One 8-bit scale for each 32 (OCP Microscaling Formats 1.0); gpt-oss keeps the rest in 16 bits.
    "mxfp4": Scheme(name="mxfp4", bits=4, group=32, scale_bits=8, experts_only=True),
    #: QLoRA: one float32 scale for each 64, 0.5 bits (Dettmers et al. 2023, arXiv 2305.14314, section 3).
    "nf4": Scheme(name="nf4", bits=4, group=64, scale_bits=32),
    #: The same with scales of 8 bits, quantized in blocks of 256: 8/64 + 32/(64·256) = 0.127 bits.
    "nf4-double": Scheme(name="nf4-double", bits=4, group=64, scale_bits=8 + 32 / 256),
    "int8": Scheme(name="int8", bits=8, scale_bits=16),
}


class UnknownScheme(LookupError):
    """Nobody says how wide a weight of that scheme is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.findings = (FieldFinding(field="scheme", message=message),)


def scheme_called(name: str) -> Scheme:
    """:raises UnknownScheme: if it is none of ``SCHEMES``."""
    if name not in SCHEMES:
        known = ", ".join(sorted(SCHEMES))
        raise UnknownScheme(f"scheme {name!r:.80} is not known; known are {known}")
    return SCHEMES[name]


def stored_scheme(architecture: Architecture, *, scheme: str = "") -> Scheme:
    """What a model's weights are written in: its scheme, else its dtype, else 16 bits.

    :raises UnknownScheme: if the scheme is not known.
    """
    return scheme_called(scheme) if scheme else _PLAIN.get(architecture.dtype, _PLAIN["bfloat16"])


def weight_bytes(architecture: Architecture, scheme: Scheme) -> Bytes:
    """Bytes of all weights.

    ``quantized × bits/8 + kept × 2``, where embeddings and the output head are kept in 16 bits, as the
    quantizers do by default, and with ``experts_only`` all but the experts.
    """
    quantized = architecture.parameters
    if not scheme.embeddings:
        quantized -= min(architecture.embedding, quantized)
    if scheme.experts_only:
        quantized = min(quantized, architecture.expert_parameters)
    kept = architecture.parameters - quantized
    bits = scheme.bits_per_weight(row=architecture.hidden)
    return Bytes(round(quantized * bits / 8 + kept * 2))
