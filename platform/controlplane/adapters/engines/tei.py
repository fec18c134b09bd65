"""The engine ``tei``: Text Embeddings Inference of Hugging Face, for embeddings on NVIDIA.

It reads arguments from the command line and, under the same names in upper case, from the environment; its API
key is ``API_KEY`` there, so that it is in no argument.
"""

from __future__ import annotations

from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    ModelFacts,
    RenderRefused,
)

#: Architectures of embedding models that it names (docs/source/en/supported_models.md).
ARCHITECTURES = frozenset(
    {
        "BertModel",
        "CamembertModel",
        "Gemma3TextModel",
        "JinaBertModel",
        "MPNetModel",
        "MistralModel",
        "ModernBertModel",
        "NewModel",
        "NomicBertModel",
        "Qwen2ForCausalLM",
        "Qwen2Model",
        "Qwen3ForCausalLM",
        "Qwen3Model",
        "RobertaModel",
        "XLMRobertaModel",
    }
)

#: Chooses the build for the card; it has builds from Turing on.
_PROGRAM = "/entrypoint.sh"
_WITHOUT_BUILD = "nvidia-v100"

PROFILE = EngineProfile(
    title="Text Embeddings Inference",
    versions=">=1.9,<1.10",
    default_version="1.9",
    images={"nvidia": "ghcr.io/huggingface/text-embeddings-inference:cuda-{version}"},
    operations={ModelKind.EMBEDDING: frozenset({Operation.EMBEDDINGS})},
    metrics={
        "requests_waiting": "te_queue_size",
        "requests_received": "te_request_count",
        "requests_ok": "te_request_success",
        "requests_failed": "te_request_failure",
        "latency": "te_request_duration",
    },
    flags=ArgumentVerification.UNVERIFIED,
    remarks=(
        Reason("engine.tei.open_endpoints", "Does not require an API key on /health and /metrics."),
        Reason(
            "engine.tei.rerank_not_offered",
            "Rerank is not offered: its request has texts and its response is a list, which clients "
            "of Jina, Cohere and vLLM do not understand. Not run on hardware.",
        ),
        Reason(
            "engine.tei.inputs_refused",
            "Inputs beyond the context length of the model are refused, not cut, and a request has "
            "up to 2,048 inputs, as in the other engines.",
        ),
    ),
    sources=(
        "huggingface/text-embeddings-inference 1.9.3 at 0d124dc9: docs/source/en/cli_arguments.md and "
        "supported_models.md, router/src/http/server.rs and types.rs, Dockerfile-cuda-all and "
        "cuda-all-entrypoint.sh",
    ),
)

_NO_TEXT = Reason("engine.tei.text_option", "this option applies to models that generate text only")
_ONE_CARD = Reason("engine.tei.one_card", "Text Embeddings Inference uses one card of a replica")
_LIMITS = (
    FieldLimit.of(
        "precision",
        ("bfloat16",),
        "engine.tei.precision_not_supported",
        "Text Embeddings Inference computes in float16 or float32",
    ),
    FieldLimit.of(
        "context_length",
        (),
        "engine.tei.context_length_from_config",
        "Text Embeddings Inference uses the context length in the files of the model",
    ),
    FieldLimit.of(
        "memory_fraction",
        (),
        "engine.tei.memory_fraction_not_configurable",
        "Text Embeddings Inference allocates memory for each batch",
    ),
    FieldLimit(field="kv_precision", values=("fp8",), reason=_NO_TEXT),
    FieldLimit(field="prefix_cache", values=("on", "off"), reason=_NO_TEXT),
    FieldLimit(field="chunked_prefill", values=("on", "off"), reason=_NO_TEXT),
    FieldLimit(field="graphs", values=("on", "off"), reason=_NO_TEXT),
    FieldLimit(field="tool_call_parser", reason=_NO_TEXT),
    FieldLimit(field="reasoning_parser", reason=_NO_TEXT),
    FieldLimit(field="parallel.tensor", reason=_ONE_CARD),
    FieldLimit(field="parallel.pipeline", reason=_ONE_CARD),
    FieldLimit(field="parallel.data", reason=_ONE_CARD),
    FieldLimit(field="parallel.expert", values=("on",), reason=_ONE_CARD),
)
#: Requests at once beside those that wait, if the spec names no number.
_DEFAULT_CONCURRENCY = 512
#: What OpenAI allows in one request, and the product's other engines.
_MAX_INPUTS = 2048
#: Bytes of a request: as many inputs as that, of a few thousand characters each.
_MAX_BODY = 32 * 1024**2
_MAX_BATCH_TOKENS = 16_384


class TeiEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "tei"
    engine_profile = PROFILE
    field_limits = _LIMITS
    checks_bfloat16 = False
    one_node_because = _ONE_CARD

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        if chip.name.startswith(_WITHOUT_BUILD):
            return Reason(
                "engine.tei.card_not_supported",
                "Text Embeddings Inference has no build for {chip}",
                chip=chip.label,
            )
        return super().unsupported_reason(task, chip)

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        if model.architecture in ARCHITECTURES:
            return ""
        return Reason(
            "engine.tei.architecture_not_supported",
            "Text Embeddings Inference serves {architectures}",
            architectures=", ".join(sorted(ARCHITECTURES)),
        )

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """:raises RenderRefused: if the replica has more than one card."""
        spec = settings.spec
        if settings.plan.cards > 1:
            raise RenderRefused(
                "engine.tei.too_many_cards",
                "Text Embeddings Inference uses one card of a replica, got {cards}: set 1 card and "
                "increase the replicas of the deployment",
                cards=settings.plan.cards,
            )
        length = settings.model.context_length if settings.model is not None else 0
        argv = [_PROGRAM, "--model-id", MODEL]
        argv += ["--served-model-name", spec["model_name"]]
        argv += ["--hostname", "0.0.0.0", "--port", "{port:http}"]  # noqa: S104 - its container
        argv += ["--prometheus-port", "{port:metrics}"]
        argv += ["--dtype", "float32" if settings.precision == "float32" else "float16"]
        argv += ["--max-concurrent-requests"]
        argv += [str((spec["concurrency"] or _DEFAULT_CONCURRENCY) + spec["queue_size"])]
        argv += ["--max-batch-tokens", str(max(_MAX_BATCH_TOKENS, length))]
        argv += ["--max-client-batch-size", str(_MAX_INPUTS), "--payload-limit", str(_MAX_BODY)]
        argv += ["--auto-truncate", "false", "--json-output"]
        return ServingCommand(
            argv=(*argv, *(spec["extra_args"] or ())),
            ports=("metrics",),
            key_variables=("API_KEY",),
        )
