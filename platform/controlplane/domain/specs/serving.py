"""The spec of a served model, for every engine and chip.

An engine supports a subset of the fields (``controlplane.domain.common.spec_fields.fields_named``). ``auto`` and
null leave the choice to the engine.
"""

from __future__ import annotations

from controlplane.domain.common.spec_fields import FieldKind, SpecField
from controlplane.domain.specs.training import PRECISIONS

_SWITCH = ("auto", "on", "off")
#: Default share of each card's memory.
MEMORY_FRACTION = 0.9

_PARALLEL = (
    SpecField(
        name="tensor",
        label="Tensor parallel",
        help="Cards that share each layer's matrices; empty is every card of the replica.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="pipeline",
        label="Pipeline parallel",
        help="Stages that the layers are divided into.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=64,
    ),
    SpecField(
        name="data",
        label="Data parallel",
        help="Copies inside of one replica; for mixtures of experts.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=256,
    ),
    SpecField(
        name="expert",
        label="Expert parallel",
        help="Whether the cards share the experts of a mixture instead of slicing each.",
        kind=FieldKind.CHOICE,
        default="off",
        choices=("on", "off"),
    ),
)

SERVE = (
    SpecField(
        name="model_name",
        label="Model name",
        help="The name by which the server knows its model.",
        kind=FieldKind.TEXT,
        default="model",
    ),
    SpecField(
        name="queue_size",
        label="Queue",
        help="Requests that may wait beside the one that runs; more are told to come back.",
        kind=FieldKind.INTEGER,
        default=64,
        least=0,
        most=10_000,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Of the weights; auto is bfloat16 on an accelerator and float32 elsewhere.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
    SpecField(
        name="context_length",
        label="Context",
        help="Longest prompt and answer together, in tokens; empty is the model's.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=128,
        most=10_485_760,
    ),
    SpecField(
        name="concurrency",
        label="Concurrency",
        help="Requests that run at once; empty is the engine's own default.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="memory_fraction",
        label="Share of memory",
        help="Of each card, for weights and KV cache together.",
        kind=FieldKind.NUMBER,
        default=MEMORY_FRACTION,
        least=0.1,
        most=0.98,
    ),
    SpecField(
        name="kv_precision",
        label="Precision of the KV cache",
        help="fp8 holds twice as many tokens.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "fp8"),
    ),
    SpecField(
        name="prefix_cache",
        label="Prefix cache",
        help="Keep what prompts have in common.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="chunked_prefill",
        label="Chunked prefill",
        help="Take long prompts in pieces between the answers of others.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="graphs",
        label="Graph mode",
        help="Record kernels once and replay them; off is slower and takes less memory.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="How the cards of a replica share the model; tensor × pipeline × data is their number.",
        kind=FieldKind.GROUP,
        fields=_PARALLEL,
    ),
    SpecField(
        name="engine_version",
        label="Engine version",
        help="Of the image that runs; empty is the one that the renderer was written for.",
        kind=FieldKind.TEXT,
        default=None,
        optional=True,
    ),
)
