"""The groups of fields of a fine-tune: adapters, objectives of their own, and the parallel plan."""

from __future__ import annotations

from controlplane.domain.fields import Field, Kind

LORA = (
    Field(
        name="rank",
        label="Rank",
        help="Size of the adapter; 8 to 64 is usual.",
        kind=Kind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    Field(
        name="alpha",
        label="Alpha",
        help="Strength of the adapter; often twice the rank.",
        kind=Kind.NUMBER,
        default=32.0,
        least=0,
        above_least=True,
        most=4096,
    ),
    Field(
        name="dropout",
        label="Dropout",
        help="Share of the adapter's inputs that is left out at each step.",
        kind=Kind.NUMBER,
        default=0.0,
        least=0,
        most=0.9,
    ),
    Field(
        name="target_modules",
        label="Target modules",
        help="Names of the layers to adapt; empty means every linear layer but the output head.",
        kind=Kind.TEXTS,
        default=None,
        optional=True,
    ),
)

QLORA = (
    Field(
        name="bits",
        label="Bits",
        help="Of a weight of the frozen model; used by the method qlora.",
        kind=Kind.INTEGER,
        default=4,
        least=4,
        most=8,
    ),
    Field(
        name="double_quantization",
        label="Double quantization",
        help="Quantize the scales as well; saves about 0.4 bits a weight.",
        kind=Kind.CHOICE,
        default="on",
        choices=("on", "off"),
    ),
)

DPO = (
    Field(
        name="beta",
        label="Beta",
        help="How hard DPO holds the model to the one that it began as.",
        kind=Kind.NUMBER,
        default=0.1,
        least=0,
        above_least=True,
        most=10,
    ),
)

GRPO = (
    Field(
        name="generations",
        label="Answers a prompt",
        help="Compared with each other; batch size × accumulation must be a multiple of it.",
        kind=Kind.INTEGER,
        default=8,
        least=2,
        most=256,
    ),
    Field(
        name="max_new_tokens",
        label="Longest answer",
        help="In tokens.",
        kind=Kind.INTEGER,
        default=256,
        least=1,
        most=131_072,
    ),
    Field(
        name="beta",
        label="Beta",
        help="Weight of the distance from the model that it began as; 0 leaves it out.",
        kind=Kind.NUMBER,
        default=0.0,
        least=0,
        most=10,
    ),
    Field(
        name="temperature",
        label="Temperature",
        help="Of the answers that are tried.",
        kind=Kind.NUMBER,
        default=1.0,
        least=0,
        above_least=True,
        most=4,
    ),
    Field(
        name="reward",
        label="Reward",
        help="What an answer earns when it is compared with the row's.",
        kind=Kind.CHOICE,
        default="exact_match",
        choices=("exact_match", "label_accuracy"),
    ),
)

PARALLEL = (
    Field(
        name="tensor",
        label="Tensor parallel",
        help="Cards that share each layer's matrices; empty is proposed.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    Field(
        name="pipeline",
        label="Pipeline parallel",
        help="Stages that the layers are divided into; empty is proposed.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=128,
    ),
    Field(
        name="data",
        label="Data parallel",
        help="Copies that each learn from other rows; empty is what the others leave.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=8192,
    ),
    Field(
        name="context",
        label="Context parallel",
        help="Cards that share a row's tokens; empty is proposed.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    Field(
        name="expert",
        label="Expert parallel",
        help="Cards that share the experts of a mixture; empty is proposed.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=256,
    ),
    Field(
        name="sequence",
        label="Sequence parallel",
        help="Whether tensor-parallel cards also share what lies between their matrices.",
        kind=Kind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    Field(
        name="zero_stage",
        label="ZeRO stage",
        help="What copies share: 1 the optimizer's states, 2 also gradients, 3 also weights; 0 is nothing.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=0,
        most=3,
    ),
)
