"""Weight memory: bits per stored weight including scales, and the shard of one card under a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.domain.architectures import Architecture
from controlplane.domain.common.reasons import Parameter, ReasonedError
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import field_finding
from controlplane.domain.jobs.parallelism import ParallelPlan, padded_vocabulary, stage_share


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightScheme:
    """A storage format of weights. Parts that are not quantized stay in 16 bits."""

    name: str
    bits: float
    #: Weights that share a scale; 0 is one scale for each row of a matrix.
    group: int = 0
    scale_bits: float = 16
    zero_bits: float = 0
    #: Only the routed experts are quantized.
    experts_only: bool = False
    #: Input embedding and output head are stored in this format too.
    embeddings: bool = False

    def bits_per_weight(self, *, row: int) -> float:
        """``bits + (scale + zero) / group``; for example AWQ of groups of 128: 4 + (16 + 4) / 128 = 4.156
        (Lin et al. 2023, arXiv 2306.00978)."""
        return self.bits + (self.scale_bits + self.zero_bits) / (self.group or row)


_PLAIN = {
    "float32": WeightScheme(name="float32", bits=32, scale_bits=0, embeddings=True),
    "bfloat16": WeightScheme(name="bfloat16", bits=16, scale_bits=0, embeddings=True),
    "float16": WeightScheme(name="float16", bits=16, scale_bits=0, embeddings=True),
}
_INT8 = WeightScheme(name="w8a8", bits=8, scale_bits=16)
_INT4 = WeightScheme(name="w4a16", bits=4, group=128, zero_bits=4)
_FP8 = WeightScheme(name="fp8", bits=8, scale_bits=32)
WEIGHT_SCHEMES: Mapping[str, WeightScheme] = {
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
    "fp8-block": WeightScheme(name="fp8-block", bits=8, group=128 * 128, scale_bits=32),
    #: One 8-bit scale for each 32 (OCP Microscaling Formats 1.0); gpt-oss keeps the rest in 16 bits.
    "mxfp4": WeightScheme(name="mxfp4", bits=4, group=32, scale_bits=8, experts_only=True),
    #: QLoRA: one float32 scale for each 64, 0.5 bits (Dettmers et al. 2023, arXiv 2305.14314, section 3).
    "nf4": WeightScheme(name="nf4", bits=4, group=64, scale_bits=32),
    #: The same with scales of 8 bits, quantized in blocks of 256: 8/64 + 32/(64·256) = 0.127 bits.
    "nf4-double": WeightScheme(name="nf4-double", bits=4, group=64, scale_bits=8 + 32 / 256),
    "int8": WeightScheme(name="int8", bits=8, scale_bits=16),
}


class UnknownScheme(ReasonedError, LookupError):
    """The width of a weight in that scheme is unknown."""

    def __init__(self, code: str, template: str, /, **params: Parameter) -> None:
        super().__init__(code, template, **params)
        self.findings = (field_finding("scheme", code, template, **params),)


def weight_scheme(name: str) -> WeightScheme:
    """:raises UnknownScheme: if it is not one of ``WEIGHT_SCHEMES``."""
    if name not in WEIGHT_SCHEMES:
        known = ", ".join(sorted(WEIGHT_SCHEMES))
        raise UnknownScheme(
            "sizing.weight_scheme.unknown",
            "scheme {scheme} is not known; known are {schemes}",
            scheme=f"{name!r:.80}",
            schemes=known,
        )
    return WEIGHT_SCHEMES[name]


def stored_scheme(architecture: Architecture, *, scheme: str = "") -> WeightScheme:
    """The format of a model's stored weights: its scheme, else its dtype, else 16 bits.

    :raises UnknownScheme: if the scheme is unknown.
    """
    return weight_scheme(scheme) if scheme else _PLAIN.get(architecture.dtype, _PLAIN["bfloat16"])


def weight_bytes(architecture: Architecture, scheme: WeightScheme) -> Bytes:
    """Bytes of all weights.

    ``quantized × bits/8 + kept × 2``, where embeddings and the output head are kept in 16 bits, as the
    quantizers do by default, and with ``experts_only`` all but the experts.
    """
    quantized = architecture.parameters
    if not scheme.embeddings:
        quantized -= min(architecture.embedding, quantized)
    if scheme.experts_only:
        quantized = min(quantized, architecture.expert_parameters)
    unquantized = architecture.parameters - quantized
    bits = scheme.bits_per_weight(row=architecture.hidden)
    return Bytes(round(quantized * bits / 8 + unquantized * 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightShard:
    """Parameters on the fullest card, before ZeRO."""

    #: Input embedding and output head, including padding.
    embedding: int
    #: Routed experts.
    expert: int
    #: Everything else.
    body: int

    @property
    def parameters(self) -> int:
        return self.embedding + self.expert + self.body


def largest_shard(architecture: Architecture, plan: ParallelPlan) -> WeightShard:
    """``body / tensor``, ``experts / (tensor · expert)``, each times the longest stage's share, and the token
    matrices ``/ tensor``. With several stages the first holds one of them and the last the other, so the fullest
    card holds one.
    """
    if plan.cards == 1:
        expert = min(architecture.expert_parameters, architecture.parameters)
        embedding = min(architecture.embedding, architecture.parameters - expert)
        return WeightShard(
            embedding=embedding,
            expert=expert,
            body=architecture.parameters - expert - embedding,
        )
    rows = padded_vocabulary(architecture.vocabulary, tensor=plan.tensor)
    matrices = 1 if architecture.tied or plan.pipeline > 1 else 2
    expert = min(architecture.expert_parameters, architecture.parameters)
    body = max(0, architecture.parameters - architecture.embedding - expert)
    stage = stage_share(architecture.layers, pipeline=plan.pipeline)
    return WeightShard(
        embedding=_divide_rounding_up(rows * architecture.hidden * matrices, plan.tensor),
        expert=_divide_rounding_up(round(expert * stage), plan.tensor * plan.expert),
        body=_divide_rounding_up(round(body * stage), plan.tensor),
    )


def _divide_rounding_up(amount: int, parts: int) -> int:
    return -(-amount // parts)
