"""The engine ``sglang``: SGLang's server in its own images, on NVIDIA and Ascend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from controlplane.adapters.engines import container_commands, container_engine, tool_parsers
from controlplane.adapters.engines.container_engine import bfloat16_limits
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
    adapter_paths,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, field_finding
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.domain.specs.serving import MEMORY_FRACTION
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    LoraSupport,
    ModelFacts,
)

#: Starts the server with the key from the environment: its own option would show it to every process.
_START = "start_sglang.py"
_NPU = "npu"
#: Encoders that score a query with a document (``srt/configs/model_config.py``: ``_cross_encoding_pooler_archs``).
CROSS_ENCODERS = frozenset({"BertForSequenceClassification", "XLMRobertaForSequenceClassification"})
#: Models of ``srt/models/bert.py`` and ``roberta.py``: every token attends to all others, so neither a part of the
#: input nor a cached beginning of it may be computed alone. SGLang does not turn that off by itself; its
#: documentation starts them without either, and on NVIDIA with this attention.
ENCODERS = CROSS_ENCODERS | {"BertModel", "XLMRobertaModel"}
_ENCODER_ATTENTION = "triton"

PROFILE = EngineProfile(
    title="SGLang",
    versions=">=0.5.14,<0.5.24",
    default_version="0.5.23",
    images={
        "nvidia": "lmsysorg/sglang:v{version}",
        **container_engine.ascend_images(
            a2="quay.io/ascend/sglang:v0.5.14-cann9.0.0-910b",
            a3="quay.io/ascend/sglang:v0.5.14-cann9.0.0-a3",
        ),
    },
    metrics={
        "requests_running": "sglang:num_running_reqs",
        "requests_waiting": "sglang:num_queue_reqs",
        "requests_ok": "sglang:num_requests_total",
        "requests_failed": "sglang:num_aborted_requests_total",
        "prompt_tokens": "sglang:prompt_tokens_total",
        "output_tokens": "sglang:generation_tokens_total",
        "time_to_first_token": "sglang:time_to_first_token_seconds",
        "inter_token_latency": "sglang:inter_token_latency_seconds",
        "latency": "sglang:e2e_request_latency_seconds",
        "kv_cache_usage": "sglang:token_usage",
        "prefix_cache_hit_rate": "sglang:cache_hit_rate",
        "output_tokens_per_second": "sglang:gen_throughput",
    },
    operations={
        ModelKind.TEXT: frozenset(
            {
                Operation.CHAT,
                Operation.COMPLETIONS,
                Operation.RESPONSES,
                Operation.MESSAGES,
                Operation.COUNT_TOKENS,
            }
        ),
        ModelKind.EMBEDDING: frozenset({Operation.EMBEDDINGS}),
        ModelKind.RERANKER: frozenset({Operation.RERANK}),
        # Both releases have the route and the models; it has no translations.
        ModelKind.TRANSCRIPTION: frozenset({Operation.TRANSCRIPTIONS}),
    },
    lora=LoraSupport(request_name="{model}:{adapter}"),
    flags=ArgumentVerification.PARSED,
    formats=frozenset({"compressed-tensors", "modelslim", "awq", "gptq", "fp8"}),
    remarks=(
        Reason(
            "engine.sglang.key_as_argument",
            "SGLang reads its API key from an argument only; a wrapper sets it "
            "inside the process, so that neither the process list nor the log "
            "contains it.",
        ),
        Reason(
            "engine.sglang.open_endpoints", "Does not require an API key on /health and /metrics."
        ),
        Reason(
            "engine.sglang.transcription_formats",
            "Transcriptions are in the formats json, text and verbose_json, of Whisper and Qwen3-ASR on "
            "NVIDIA. Not run on hardware.",
        ),
        Reason(
            "engine.sglang.memory_fraction_meaning",
            "memory_fraction is for weights and KV cache only; unlike in vLLM, it "
            "does not include activations and graphs. With the default value SGLang "
            "chooses the fraction for the card; any other value is passed unchanged.",
        ),
    ),
    sources=(
        "SGLang 0.5.14 and 0.5.23: sglang/srt/server_args.py; srt/entrypoints/http_server.py and "
        "transcription_adapters for transcriptions",
        "https://docs.sglang.io/advanced_features/server_arguments.html",
        "sgl-project/sglang at 85b746f7: docs_new/docs/supported-models/rerank_models.mdx, and at 01c1f96d "
        "embedding_models.mdx, for encoders",
    ),
)


_WHOLE_INPUT = Reason(
    "engine.sglang.encoder_whole_input", "SGLang computes every input of an encoder as a whole"
)
_ENCODER_LIMITS = (
    FieldLimit(field="prefix_cache", values=("on",), reason=_WHOLE_INPUT),
    FieldLimit(field="chunked_prefill", values=("on",), reason=_WHOLE_INPUT),
)
#: Architectures of ``srt/models`` of SGLang 0.5.14 and 0.5.23 whose ``forward`` has ``pp_proxy_tensors``. Others
#: fail only after their weights are loaded, so that an unknown one is refused.
PIPELINE_ARCHITECTURES = frozenset(
    {
        "ApertusForCausalLM",
        "ArceeForCausalLM",
        "BailingMoEForCausalLM",
        "BailingMoeForCausalLM",
        "BailingMoeV2ForCausalLM",
        "BailingMoeV2_5ForCausalLM",
        "DeciLMForCausalLM",
        "DeepseekV2ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "DotsVLMForCausalLM",
        "Exaone4ForCausalLM",
        "ExaoneMoEForCausalLM",
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Glm4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "GlmOcrForConditionalGeneration",
        "GptOssForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "IQuestCoderForCausalLM",
        "InternLM3ForCausalLM",
        "InternS1ProForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "KimiK25ForConditionalGeneration",
        "KimiLinearForCausalLM",
        "LagunaForCausalLM",
        "Llama4ForCausalLM",
        "LlamaForCausalLM",
        "LlavaForConditionalGeneration",
        "MiMoV2FlashForCausalLM",
        "MiMoV2ForCausalLM",
        "MiniMaxM2ForCausalLM",
        "Ministral3ForCausalLM",
        "MistralForCausalLM",
        "MistralLarge3ForCausalLM",
        "MixtralForCausalLM",
        "MossVLForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "OPTForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "SDARForCausalLM",
        "SDARMoeForCausalLM",
        "SarvamMLAForCausalLM",
        "SarvamMoEForCausalLM",
        "Step3p5ForCausalLM",
        "TeleFLMForCausalLM",
        "ZayaForCausalLM",
    }
)


def _pipeline_refusal(model: ModelFacts | None) -> str:
    """Why the layers of the model cannot be divided into stages; empty if they can."""
    if model is None or not model.architecture or model.architecture in PIPELINE_ARCHITECTURES:
        return ""
    return Reason(
        "engine.sglang.pipeline_not_supported",
        "SGLang has no pipeline parallelism of {architecture}",
        architecture=model.architecture,
    )


def _model_limits(model: ModelFacts | None) -> tuple[FieldLimit, ...]:
    limits = _ENCODER_LIMITS if model is not None and model.architecture in ENCODERS else ()
    if reason := _pipeline_refusal(model):
        return (*limits, FieldLimit(field="parallel.pipeline", reason=reason))
    return limits


class SglangEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "sglang"
    engine_profile = PROFILE
    parsers = "sglang"
    # ``ResponsesRequest`` has ``text`` since 0.5.18 (``srt/entrypoints/openai/protocol.py``); earlier releases
    # answer without the schema, and with 200.
    parameter_min_versions = MappingProxyType(
        {Operation.RESPONSES: MappingProxyType({"text.format": "0.5.18"})}
    )

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        limits = _model_limits(model)
        if chip is None or chip.torch_device != _NPU:
            return limits
        return (
            *limits,
            FieldLimit.of(
                "kv_precision",
                ("fp8",),
                "engine.sglang.kv_precision_not_supported",
                "SGLang does not support this KV cache format on {chip}",
                chip=chip.label,
            ),
            *bfloat16_limits(chip),
        )

    def check_engine_rules(self, spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
        if ":" in spec["model_name"]:
            yield field_finding(
                "model_name",
                "engine.sglang.invalid_model_name",
                "model_name must not contain ':' for SGLang, which uses it to separate a "
                "model and its adapter, got {name}",
                name=repr(spec["model_name"]),
            )

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        if model.kind is ModelKind.RERANKER and model.architecture.endswith("ForCausalLM"):
            return Reason(
                "engine.sglang.reranker_not_supported",
                "rerankers that are causal language models are rendered for vLLM only",
            )
        if model.kind is ModelKind.RERANKER and model.architecture not in CROSS_ENCODERS:
            return Reason(
                "engine.sglang.cross_encoder_required",
                "SGLang serves only rerankers of the architectures {architectures}",
                architectures=", ".join(sorted(CROSS_ENCODERS)),
            )
        if model.kind is ModelKind.TRANSCRIPTION and chip is not None and chip.torch_device == _NPU:
            return Reason(
                "engine.sglang.transcription_not_supported",
                "the table of models of SGLang for Ascend names no model of transcription",
            )
        return ""

    def unsupported_weights_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        if chip is None:
            return ""
        npu = chip.torch_device == _NPU
        if npu and model.format != "modelslim":
            return Reason(
                "engine.sglang.weights_not_supported",
                "SGLang on {chip} supports ModelSlim weights only",
                chip=chip.label,
            )
        if not npu and model.format == "modelslim":
            return Reason(
                "engine.sglang.modelslim_not_supported",
                "ModelSlim weights are for Ascend, not for {chip}",
                chip=chip.label,
            )
        return ""

    def check_nodes(
        self, spec: Mapping[str, Any], *, nodes: int, model: ModelFacts | None
    ) -> tuple[FieldFinding, ...]:
        """Its own check refuses copies of the model on several nodes too."""
        found = super().check_nodes(spec, nodes=nodes, model=model)
        group = self.normalise(EngineTask.SERVE, spec)["parallel"]
        copies = group["data"]
        if copies == 1 and not group["tensor"] and (reason := _pipeline_refusal(model)):
            return (
                *found,
                field_finding(
                    "parallel.tensor",
                    "engine.sglang.multi_node_tensor_required",
                    "{reason}, which a replica on {nodes} nodes uses if parallel.tensor is empty: set "
                    "parallel.tensor to the number of cards of the replica, or use another engine",
                    reason=reason,
                    nodes=nodes,
                ),
            )
        if copies == 1:
            return found
        return (
            *found,
            field_finding(
                "parallel.data",
                "engine.sglang.multi_node_data_parallelism",
                "SGLang requires the {copies} copies of parallel.data on one node, got "
                "{nodes} nodes: set parallel.data to 1 and increase the replicas of the "
                "deployment",
                copies=copies,
                nodes=nodes,
            ),
        )

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """The replica's nodes run the same command; all of them answer ``/health``."""
        spec, plan = settings.spec, settings.plan
        argv = ["{python}", f"{{work}}/{_START}", "--model-path", MODEL]
        argv += ["--served-model-name", spec["model_name"]]
        argv += ["--host", "0.0.0.0", "--port", "{port:http}", "--enable-metrics"]  # noqa: S104 - its container
        argv += ["--dtype", settings.precision, *_chip_arguments(settings)]
        argv += ["--tp-size", str(plan.tensor), "--pp-size", str(plan.pipeline)]
        argv += ["--dp-size", str(plan.data)]
        if plan.expert > 1:
            argv += ["--ep-size", str(plan.tensor)]
        if spec["memory_fraction"] != MEMORY_FRACTION:
            argv += ["--mem-fraction-static", f"{spec['memory_fraction']:g}"]
        argv += ["--max-queued-requests", str(spec["queue_size"])]
        if spec["context_length"]:
            argv += ["--context-length", str(spec["context_length"])]
        if spec["concurrency"]:
            argv += ["--max-running-requests", str(spec["concurrency"])]
        argv += _feature_switches(settings)
        argv += _kind_arguments(settings)
        argv += _adapter_arguments(settings)
        if settings.nodes > 1:
            argv += ["--nnodes", str(settings.nodes), "--node-rank", "{index}"]
            argv += ["--dist-init-addr", f"{{leader}}:{settings.master_port}"]
        argv += spec["extra_args"] or ()
        return ServingCommand(
            argv=tuple(argv),
            files={_START: container_commands.read_bundled_program("start_sglang")},
        )


def _is_encoder(settings: ServingSettings) -> bool:
    return settings.model is not None and settings.model.architecture in ENCODERS


def _kind_arguments(settings: ServingSettings) -> list[str]:
    """Parsers of a model that generates text; the switch of one that embeds or scores."""
    kind = settings.model.kind if settings.model is not None else None
    if kind in (ModelKind.EMBEDDING, ModelKind.RERANKER):
        return ["--is-embedding"]
    if kind is ModelKind.TRANSCRIPTION:
        return []
    parsers = tool_parsers.parser_names(
        settings.spec, model=settings.model, engine="sglang", version=settings.version
    )
    argv = []
    if parsers.tools:
        argv += ["--tool-call-parser", parsers.tools]
    if parsers.reasoning:
        argv += ["--reasoning-parser", parsers.reasoning]
    return argv


def _adapter_arguments(settings: ServingSettings) -> list[str]:
    """Every adapter may be in one batch, beside requests to the base model."""
    adapters = settings.adapters
    if not adapters:
        return []
    argv = ["--enable-lora", "--max-loras-per-batch", str(len(adapters) + 1)]
    argv += ["--max-lora-rank", str(max(adapter.rank for adapter in adapters))]
    if settings.chip.torch_device == _NPU:
        argv += ["--lora-backend", "ascend"]
    return [*argv, "--lora-paths", *adapter_paths(adapters)]


def _chip_arguments(settings: ServingSettings) -> list[str]:
    argv = ["--device", settings.chip.torch_device]
    if settings.chip.torch_device == _NPU:
        argv += ["--attention-backend", "ascend"]
    elif _is_encoder(settings):
        argv += ["--attention-backend", _ENCODER_ATTENTION]
    if settings.model is not None and settings.model.format == "modelslim":
        argv += ["--quantization", "modelslim"]
    return argv


def _feature_switches(settings: ServingSettings) -> list[str]:
    """A feature that is on by default has no option to enable it."""
    argv = []
    if settings.is_set("kv_precision", "fp8"):
        argv += ["--kv-cache-dtype", "fp8_e4m3"]
    if settings.is_set("prefix_cache", "off") or _is_encoder(settings):
        argv.append("--disable-radix-cache")
    if settings.is_set("chunked_prefill", "off") or _is_encoder(settings):
        argv += ["--chunked-prefill-size", "-1"]
    if settings.is_set("graphs", "off"):
        argv += ["--disable-decode-cuda-graph", "--disable-prefill-cuda-graph"]
    return argv
