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
        help="Number of cards that share each layer. Empty: all cards of the replica, on several nodes those of a "
        "node.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="pipeline",
        label="Pipeline parallel",
        help="Number of stages that the layers are divided into. On several nodes, if tensor is empty and data is "
        "1: one for each node.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=64,
    ),
    SpecField(
        name="data",
        label="Data parallel",
        help="Number of model copies in a replica; used by mixture-of-experts models.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=256,
    ),
    SpecField(
        name="expert",
        label="Expert parallel",
        help="Distributes whole experts over the cards instead of slices of each expert.",
        kind=FieldKind.CHOICE,
        default="off",
        choices=("on", "off"),
    ),
)

SERVE = (
    SpecField(
        name="model_name",
        label="Model name",
        help="Model name in requests to the server.",
        kind=FieldKind.TEXT,
        default="model",
    ),
    SpecField(
        name="queue_size",
        label="Max pending requests",
        help="Maximum number of requests that wait for the running one; further requests are rejected with "
        "status 503.",
        kind=FieldKind.INTEGER,
        default=64,
        least=0,
        most=10_000,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Data type of the weights. auto: bfloat16 on an accelerator, otherwise float32.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
    SpecField(
        name="context_length",
        label="Context length",
        help="Maximum number of tokens of prompt and output together. Empty: the context length of the model.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=128,
        most=10_485_760,
    ),
    SpecField(
        name="concurrency",
        label="Concurrent requests",
        help="Maximum number of concurrent requests. Empty: the default of the engine.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="memory_fraction",
        label="Device memory fraction",
        help="Fraction of the memory of each card that weights and KV cache use together.",
        kind=FieldKind.NUMBER,
        default=MEMORY_FRACTION,
        least=0.1,
        most=0.98,
    ),
    SpecField(
        name="kv_precision",
        label="KV cache precision",
        help="Data type of the KV cache. fp8 stores twice as many tokens as a 16-bit type.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "fp8"),
    ),
    SpecField(
        name="prefix_cache",
        label="Prefix caching",
        help="Reuses the KV cache of common prompt prefixes.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="chunked_prefill",
        label="Chunked prefill",
        help="Divides long prompts into chunks and batches them with decoding requests.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="graphs",
        label="Graph mode",
        help="Captures kernels into a graph and replays it. off: slower, less memory.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=_SWITCH,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="Distribution of the model over the cards of a replica; tensor × pipeline × data is the number of "
        "cards.",
        kind=FieldKind.GROUP,
        fields=_PARALLEL,
    ),
    SpecField(
        name="tool_call_parser",
        label="Tool call parser",
        help="Name of the engine's parser of tool calls. Empty: that of the model's family, if there is one. "
        "off: tool calls stay in the text.",
        kind=FieldKind.TEXT,
        default=None,
        optional=True,
    ),
    SpecField(
        name="reasoning_parser",
        label="Reasoning parser",
        help="Name of the engine's parser that separates reasoning from the answer. Empty: that of the model's "
        "family if its models always reason, such as DeepSeek-R1 and QwQ; reasoning of other models stays in the "
        "text, also of hybrid ones such as Qwen3. auto: that of the family in any case. off: reasoning stays in "
        "the text.",
        kind=FieldKind.TEXT,
        default=None,
        optional=True,
    ),
    SpecField(
        name="extra_args",
        label="Extra arguments",
        help="Arguments of the engine's server that have no field here, such as --max-num-batched-tokens=8192. "
        "They are passed unchanged and not checked.",
        kind=FieldKind.TEXTS,
        default=None,
        optional=True,
    ),
    SpecField(
        name="engine_version",
        label="Engine version",
        help="Version of the engine image. Empty: the version that the rendered arguments are written for.",
        kind=FieldKind.TEXT,
        default=None,
        optional=True,
    ),
)
