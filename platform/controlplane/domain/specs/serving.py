"""The spec of a served model, for every engine and chip.

An engine supports a subset of the fields (``controlplane.domain.common.spec_fields.fields_named``). ``auto`` and
null leave the choice to the engine.
"""

from __future__ import annotations

from controlplane.domain.common.spec_fields import (
    choice_field,
    group_field,
    integer_field,
    number_field,
    text_field,
    texts_field,
)
from controlplane.domain.specs.training import ENGINE_VERSION, PRECISIONS

_SWITCH = ("auto", "on", "off")
#: Default share of each card's memory.
MEMORY_FRACTION = 0.9

_PARALLEL = (
    integer_field(
        "tensor",
        "Tensor parallel",
        "Number of cards that share each layer. Empty: all cards of the replica, on several nodes those of a "
        "node.",
        default=None,
        within=(1, 64),
    ),
    integer_field(
        "pipeline",
        "Pipeline parallel",
        "Number of stages that the layers are divided into. On several nodes, if tensor is empty and data is "
        "1: one for each node.",
        default=1,
        within=(1, 64),
    ),
    integer_field(
        "data",
        "Data parallel",
        "Number of model copies in a replica; used by mixture-of-experts models.",
        default=1,
        within=(1, 256),
    ),
    choice_field(
        "expert",
        "Expert parallel",
        "Distributes whole experts over the cards instead of slices of each expert.",
        default="off",
        choices=("on", "off"),
    ),
)

SERVE = (
    text_field(
        "model_name", "Model name", "Model name in requests to the server.", default="model"
    ),
    integer_field(
        "queue_size",
        "Max pending requests",
        "Maximum number of requests that wait for the running one; further requests are rejected with "
        "status 503.",
        default=64,
        within=(0, 10_000),
    ),
    choice_field(
        "precision",
        "Precision",
        "Data type of the weights. auto: bfloat16 on an accelerator, otherwise float32.",
        default="auto",
        choices=PRECISIONS,
    ),
    integer_field(
        "context_length",
        "Context length",
        "Maximum number of tokens of prompt and output together. Empty: the context length of the model.",
        default=None,
        within=(128, 10_485_760),
    ),
    integer_field(
        "concurrency",
        "Concurrent requests",
        "Maximum number of concurrent requests. Empty: the default of the engine.",
        default=None,
        within=(1, 65_536),
    ),
    number_field(
        "memory_fraction",
        "Device memory fraction",
        "Fraction of the memory of each card that weights and KV cache use together.",
        default=MEMORY_FRACTION,
        within=(0.1, 0.98),
    ),
    choice_field(
        "kv_precision",
        "KV cache precision",
        "Data type of the KV cache. fp8 stores twice as many tokens as a 16-bit type.",
        default="auto",
        choices=("auto", "fp8"),
    ),
    choice_field(
        "prefix_cache",
        "Prefix caching",
        "Reuses the KV cache of common prompt prefixes.",
        default="auto",
        choices=_SWITCH,
    ),
    choice_field(
        "chunked_prefill",
        "Chunked prefill",
        "Divides long prompts into chunks and batches them with decoding requests.",
        default="auto",
        choices=_SWITCH,
    ),
    choice_field(
        "graphs",
        "Graph mode",
        "Captures kernels into a graph and replays it. off: slower, less memory.",
        default="auto",
        choices=_SWITCH,
    ),
    group_field(
        "parallel",
        "Parallel plan",
        "Distribution of the model over the cards of a replica; tensor × pipeline × data is the number of "
        "cards.",
        fields=_PARALLEL,
    ),
    text_field(
        "tool_call_parser",
        "Tool call parser",
        "Name of the engine's parser of tool calls. Empty: that of the model's family, if there is one. "
        "off: tool calls stay in the text.",
        default=None,
    ),
    text_field(
        "reasoning_parser",
        "Reasoning parser",
        "Name of the engine's parser that separates reasoning from the answer. Empty: that of the model's "
        "family if its models always reason, such as DeepSeek-R1 and QwQ; reasoning of other models stays in the "
        "text, also of hybrid ones such as Qwen3. auto: that of the family in any case. off: reasoning stays in "
        "the text.",
        default=None,
    ),
    texts_field(
        "extra_args",
        "Extra arguments",
        "Arguments of the engine's server that have no field here, such as --max-num-batched-tokens=8192. "
        "They are passed unchanged and not checked.",
        default=None,
    ),
    ENGINE_VERSION,
)
