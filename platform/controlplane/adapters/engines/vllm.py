"""The engine ``vllm``, vLLM's server in its own image, and ``vllm_ascend``, that of vLLM Ascend.

The parser of ``vllm serve`` is the same; vLLM Ascend has images, graphs and quantized weights of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from controlplane.adapters.engines import container_commands, container_engine, tool_parsers
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
    adapter_paths,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.domain.serving.lifecycle import DRAIN_SECONDS
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    LoraSupport,
    ModelFacts,
)

#: What starts the command on several nodes: all but the first have no HTTP of their own.
FOLLOW = "follow.py"
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CACHE_ROOT": "{work}/tmp/vllm",
}
#: Read by the server where ``--api-key`` is not given, so that the key is in no argument.
KEY_VARIABLE = "VLLM_API_KEY"

OPERATIONS = {
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
    ModelKind.TRANSCRIPTION: frozenset({Operation.TRANSCRIPTIONS, Operation.TRANSLATIONS}),
}

#: Values of ``--max-lora-rank``.
LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
LORA = LoraSupport(max_rank=LORA_RANKS[-1])

METRICS = {
    "requests_running": "vllm:num_requests_running",
    "requests_waiting": "vllm:num_requests_waiting",
    "requests_ok": "vllm:request_success_total",
    # Failures before the engine are seen as HTTP 5xx only; the gateway counts them all.
    "requests_failed": 'vllm:request_success_total{finished_reason="error"}',
    "prompt_tokens": "vllm:prompt_tokens_total",
    "output_tokens": "vllm:generation_tokens_total",
    "time_to_first_token": "vllm:time_to_first_token_seconds",
    "inter_token_latency": "vllm:inter_token_latency_seconds",
    "time_per_output_token": "vllm:request_time_per_output_token_seconds",
    "latency": "vllm:e2e_request_latency_seconds",
    "kv_cache_usage": "vllm:kv_cache_usage_perc",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
    "prefix_cache_queries": "vllm:prefix_cache_queries_total",
    "preemptions": "vllm:num_preemptions_total",
}


def serve_command(settings: ServingSettings) -> list[str]:
    """What every chip is given alike."""
    spec, plan = settings.spec, settings.plan
    argv = ["vllm", "serve", MODEL, "--served-model-name", spec["model_name"]]
    argv += ["--host", "0.0.0.0", "--port", "{port:http}"]  # noqa: S104 - inside of its container
    # Without it requests in progress are aborted at SIGTERM.
    argv += ["--shutdown-timeout", str(DRAIN_SECONDS)]
    argv += ["--dtype", settings.precision]
    argv += ["--tensor-parallel-size", str(plan.tensor)]
    argv += ["--pipeline-parallel-size", str(plan.pipeline)]
    argv += ["--data-parallel-size", str(plan.data)]
    if plan.expert > 1:
        argv.append("--enable-expert-parallel")
    argv += ["--gpu-memory-utilization", f"{spec['memory_fraction']:g}"]
    if spec["context_length"]:
        argv += ["--max-model-len", str(spec["context_length"])]
    if spec["concurrency"]:
        argv += ["--max-num-seqs", str(spec["concurrency"])]
    argv += _feature_switch(settings, "prefix_cache", "enable-prefix-caching")
    argv += _feature_switch(settings, "chunked_prefill", "enable-chunked-prefill")
    argv += _kind_arguments(settings)
    argv += _adapter_arguments(settings)
    return argv + list(spec["extra_args"] or ())


def _adapter_arguments(settings: ServingSettings) -> list[str]:
    """Every adapter may be in one batch; the rank is the least that vLLM reserves memory for and all have."""
    adapters = settings.adapters
    if not adapters:
        return []
    rank = max(adapter.rank for adapter in adapters)
    reserved = next(each for each in LORA_RANKS if each >= rank)
    argv = ["--enable-lora", "--max-loras", str(len(adapters)), "--max-lora-rank", str(reserved)]
    return [*argv, "--lora-modules", *adapter_paths(adapters)]


def _kind_arguments(settings: ServingSettings) -> list[str]:
    """Parsers of a model that generates text; the pooling of one that does not."""
    kind = settings.model.kind if settings.model is not None else None
    if kind is ModelKind.RERANKER and settings.model is not None and is_causal(settings.model):
        return ["--runner", "pooling", *_SCORE_ARGUMENTS]
    if kind in (ModelKind.EMBEDDING, ModelKind.RERANKER):
        return ["--runner", "pooling"]
    if kind is ModelKind.TRANSCRIPTION:
        return []
    parsers = tool_parsers.parser_names(
        settings.spec, model=settings.model, engine="vllm", version=settings.version
    )
    argv = []
    if parsers.tools:
        argv += ["--enable-auto-tool-choice", "--tool-call-parser", parsers.tools]
    if parsers.reasoning:
        argv += ["--reasoning-parser", parsers.reasoning]
    return argv


#: The file of the prompt of a reranker that says yes or no.
SCORE_TEMPLATE = "score_template.jinja"
#: Of the logits of yes and no a classifier is made, as vLLM documents it for Qwen3-Reranker.
_SCORE_ARGUMENTS = (
    "--hf-overrides",
    '{"architectures":["Qwen3ForSequenceClassification"],"classifier_from_token":["no","yes"],'
    '"is_original_qwen3_reranker":true}',
    "--chat-template",
    f"{{work}}/{SCORE_TEMPLATE}",
)
#: The one causal language model that vLLM makes a reranker of by these arguments.
_CAUSAL_RERANKER = "Qwen3ForCausalLM"


def is_causal(model: ModelFacts) -> bool:
    return model.architecture.endswith("ForCausalLM")


def score_files(settings: ServingSettings) -> dict[str, str]:
    """The files that a reranker needs beside those of its model."""
    model = settings.model
    if model is None or model.kind is not ModelKind.RERANKER or not is_causal(model):
        return {}
    # The prompt of Qwen3-Reranker, as vLLM and Qwen document it.
    return {SCORE_TEMPLATE: container_commands.bundled_text("qwen3_reranker.jinja")}


def unsupported_reranker_reason(model: ModelFacts) -> str:
    """Why a reranker is not served; empty if it is, or is a model of another kind."""
    if (
        model.kind is not ModelKind.RERANKER
        or not is_causal(model)
        or model.architecture == _CAUSAL_RERANKER
    ):
        return ""
    return Reason(
        "engine.vllm.reranker_not_supported",
        "of causal language models only {architecture} is served as a reranker",
        architecture=_CAUSAL_RERANKER,
    )


def multi_node_command(
    settings: ServingSettings, argv: list[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and files of a replica on several nodes; on one node the command as it is."""
    if settings.nodes == 1:
        return tuple(argv), {}
    argv = [
        *argv,
        *("--distributed-executor-backend", "mp", "--nnodes", str(settings.nodes)),
        *("--node-rank", "{index}", "--master-addr", "{leader}"),
        *("--master-port", str(settings.master_port)),
    ]
    command = ("{python}", f"{{work}}/{FOLLOW}", "{port:http}", *argv)
    return command, {FOLLOW: container_commands.read_bundled_program("follow")}


def as_json(value: object) -> str:
    """Compact, as an argument."""
    return json.dumps(value, separators=(",", ":"))


def _feature_switch(settings: ServingSettings, field: str, flag: str) -> list[str]:
    value = settings.spec[field]
    return {"on": [f"--{flag}"], "off": [f"--no-{flag}"]}.get(value, [])


OPEN_ENDPOINTS = Reason(
    "engine.vllm.open_endpoints",
    "vLLM requires the API key on /v1 only: every client that can reach the port can read "
    "/metrics and /health.",
)
QUEUE_SIZE_LIMIT = FieldLimit.of(
    "queue_size",
    (),
    "engine.vllm.queue_size_not_supported",
    "vLLM does not limit the number of queued requests; set limits on the API keys of the gateway",
)
VLLM_PROFILE = EngineProfile(
    title="vLLM",
    versions=">=0.23,<0.34",
    default_version="0.23.0",
    images={"nvidia": "vllm/vllm-openai:v{version}"},
    metrics=METRICS,
    operations=OPERATIONS,
    lora=LORA,
    flags=ArgumentVerification.PARSED,
    formats=frozenset({"compressed-tensors", "awq", "gptq", "fp8"}),
    remarks=(
        OPEN_ENDPOINTS,
        Reason(
            "engine.vllm.failures_not_counted",
            "vLLM does not count failed requests; the gateway counts them.",
        ),
    ),
    sources=(
        "vLLM 0.23.0 and 0.33.0: vllm/engine/arg_utils.py and the command-line arguments of its server",
        "https://docs.vllm.ai/en/latest/configuration/serve_args.html",
    ),
)


#: Architecture → the last release of vLLM with it (``max_version``), from the registry of 0.33.0. With a later one
#: the server ends at the start. Those that transformers has are left out: vLLM may run its classes instead.
LAST_RELEASES: Mapping[str, str] = {
    "AquilaForCausalLM": "0.24.0",
    "AquilaModel": "0.24.0",
    "ArcticForCausalLM": "0.28.0",
    "BaiChuanForCausalLM": "0.23.0",
    "BaichuanForCausalLM": "0.23.0",
    "Cheers": "0.28.0",
    "CheersForConditionalGeneration": "0.28.0",
    "DonutForConditionalGeneration": "0.10.2",
    "Fairseq2LlamaForCausalLM": "0.28.0",
    "FireRedLIDForConditionalGeneration": "0.28.0",
    "GritLM": "0.28.0",
    "Grok1ForCausalLM": "0.24.0",
    "Grok1ModelForCausalLM": "0.24.0",
    "HCXVisionForCausalLM": "0.28.0",
    "InternLM2VEForCausalLM": "0.23.0",
    "InternLMForCausalLM": "0.23.0",
    "JAISLMHeadModel": "0.22.0",
    "MPTForCausalLM": "0.28.0",
    "MantisForConditionalGeneration": "0.24.0",
    "MiniMaxM1ForCausalLM": "0.23.0",
    "MiniMaxText01ForCausalLM": "0.23.0",
    "MiniMaxVL01ForConditionalGeneration": "0.23.0",
    "MotifForCausalLM": "0.10.2",
    "OuroForCausalLM": "0.26.0",
    "Phi3SmallForCausalLM": "0.9.2",
    "Phi4FlashForCausalLM": "0.10.2",
    "Plamo2ForCausalLM": "0.26.0",
    "PrithviGeoSpatialMAE": "0.28.0",
    "QWenLMHeadModel": "0.23.0",
    "QwenVLForConditionalGeneration": "0.23.0",
    "RWForCausalLM": "0.28.0",
    "StableLMEpochForCausalLM": "0.28.0",
    "Tarsier2ForConditionalGeneration": "0.23.0",
    "TarsierForConditionalGeneration": "0.24.0",
    "TeleChatForCausalLM": "0.25.0",
    "XverseForCausalLM": "0.23.0",
}

#: Encoders and Whisper, whose models have no ``SupportsPP``; vLLM ends at the start.
_WITHOUT_PIPELINE = re.compile(r"Bert|Roberta|Whisper|^(Gte)?New")
#: The other architectures of the registries of vLLM 0.23.0 and 0.33.0 whose classes have no ``SupportsPP``.
_ARCHITECTURES_WITHOUT_PIPELINE = frozenset(
    {
        "AliceAIForCausalLM",
        "AriaForConditionalGeneration",
        "BgeM3EmbeddingModel",
        "CLIPModel",
        "CohereAsrForConditionalGeneration",
        "ColBERTLfm2Model",
        "D3ForSequenceClassification",
        "DiffusionGemmaForBlockDiffusion",
        "DomynEdgeForCausalLM",
        "DoryForCausalLM",
        "EmbeddingGemma2Model",
        "ErnieForSequenceClassification",
        "ErnieForTokenClassification",
        "ErnieModel",
        "FireRedASR2ForConditionalGeneration",
        "FireRedLIDForConditionalGeneration",
        "FunASRForConditionalGeneration",
        "GPT2ForSequenceClassification",
        "Gemma3TextModel",
        "Gemma3nForCausalLM",
        "Gemma3nForConditionalGeneration",
        "GteModel",
        "HF_ColBERT",
        "HrmTextForCausalLM",
        "IQuestLoopCoderForCausalLM",
        "Idefics3ForConditionalGeneration",
        "JinaForRanking",
        "Lfm2BidirectionalModel",
        "LlamaBidirectionalForSequenceClassification",
        "LlamaBidirectionalModel",
        "Mamba2ForCausalLM",
        "MiniMaxForCausalLM",
        "MiniMaxM1ForCausalLM",
        "MiniMaxText01ForCausalLM",
        "NemotronH_Nano_Omni_Reasoning_V3",
        "NemotronH_Nano_VL_V2",
        "NemotronH_Omni_Reasoning_V3",
        "NemotronH_Super_Omni_Reasoning_V3",
        "NemotronParseForConditionalGeneration",
        "OpenAIPrivacyFilterForTokenClassification",
        "OuroForCausalLM",
        "PaddleOCRVLForConditionalGeneration",
        "Phi4MMForCausalLM",
        "PrithviGeoSpatialMAE",
        "RadioMBartPrefixForCausalLM",
        "SiglipModel",
        "SmolVLMForConditionalGeneration",
        "Terratorch",
        "VoyageQwen3BidirectionalEmbedModel",
        "Zamba2ForCausalLM",
    }
)
_PIPELINE_LIMIT = FieldLimit(
    field="parallel.pipeline",
    reason=Reason(
        "engine.vllm.pipeline_not_supported",
        "vLLM has no pipeline parallelism of this model",
    ),
)


def pipeline_limits(model: ModelFacts | None) -> tuple[FieldLimit, ...]:
    """That a model cannot be divided by layers, if so."""
    if model is None or supports_pipeline(model.architecture):
        return ()
    return (_PIPELINE_LIMIT,)


def supports_pipeline(architecture: str) -> bool:
    """Whether vLLM divides the layers of a model of the architecture; also where its registry lacks it."""
    return (
        architecture not in _ARCHITECTURES_WITHOUT_PIPELINE
        and _WITHOUT_PIPELINE.search(architecture) is None
    )


class VllmEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm"
    engine_profile = VLLM_PROFILE
    field_limits = (QUEUE_SIZE_LIMIT,)
    checks_bfloat16 = False
    parsers = "vllm"
    architecture_max_versions = LAST_RELEASES

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*super().limits(task, chip=chip, model=model), *pipeline_limits(model))

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        return unsupported_reranker_reason(model)

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """Quantized weights carry their quantization config, so no ``--quantization`` is given."""
        argv = serve_command(settings)
        if settings.is_set("kv_precision", "fp8"):
            argv += ["--kv-cache-dtype", "fp8"]
        if settings.is_set("graphs", "off"):
            argv.append("--enforce-eager")
        command, programs = multi_node_command(settings, argv)
        return ServingCommand(
            argv=command,
            files={**programs, **score_files(settings)},
            environment=ENVIRONMENT,
            key_variables=(KEY_VARIABLE,),
        )


_ASCEND_A2_IMAGE = "quay.io/ascend/vllm-ascend:v{version}"
_ASCEND_A3_IMAGE = f"{_ASCEND_A2_IMAGE}-a3"
_310P = f"{_ASCEND_A2_IMAGE}-310p"
VLLM_ASCEND_PROFILE = EngineProfile(
    title="vLLM Ascend",
    versions=">=0.23,<0.24",
    default_version="0.23.0",
    images=container_engine.ascend_images(
        a2=_ASCEND_A2_IMAGE, a3=_ASCEND_A3_IMAGE, inference=_310P
    ),
    metrics=METRICS,
    operations=OPERATIONS,
    lora=LORA,
    flags=ArgumentVerification.PARSED,
    formats=frozenset({"compressed-tensors", "modelslim"}),
    remarks=(
        OPEN_ENDPOINTS,
        Reason(
            "engine.vllm_ascend.network_interface",
            "Across nodes, the network interface may have to be set in "
            "HCCL_SOCKET_IFNAME and similar variables; its name depends on the "
            "cluster.",
        ),
    ),
    sources=(
        "vLLM 0.23.0: vllm/engine/arg_utils.py, which reads the arguments",
        "vllm-project/vllm-ascend at 182b75ea84: docs/source/user_guide",
    ),
)

_ASCEND_ENVIRONMENT = {
    "TASK_QUEUE_ENABLE": "1",
    "HCCL_BUFFSIZE": "1024",
    "HCCL_OP_EXPANSION_MODE": "AIV",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
}
_VLLM_ASCEND_LIMITS = (
    QUEUE_SIZE_LIMIT,
    FieldLimit.of(
        "kv_precision",
        ("fp8",),
        "engine.vllm_ascend.kv_precision_not_configurable",
        "vLLM Ascend stores the KV cache in the precision of the weights, or in "
        "the format written by ModelSlim",
    ),
)
#: What its table of models (docs/source/user_guide/support_matrix/supported_models.md at 182b75ea) marks as not
#: supported; vLLM serves it on GPUs.
_NOT_ON_ASCEND = frozenset({"WhisperForConditionalGeneration"})
#: Graphs of the decoding steps only; what vLLM Ascend names as the setting for small chips.
_DECODE_GRAPHS = {"cudagraph_mode": "FULL_DECODE_ONLY"}


class VllmAscendEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm_ascend"
    engine_profile = VLLM_ASCEND_PROFILE
    field_limits = _VLLM_ASCEND_LIMITS
    parsers = "vllm"
    architecture_max_versions = LAST_RELEASES

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*super().limits(task, chip=chip, model=model), *pipeline_limits(model))

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        if model.architecture in _NOT_ON_ASCEND:
            return Reason(
                "engine.vllm_ascend.model_not_supported",
                "the table of models of vLLM Ascend names it as not supported",
            )
        return unsupported_reranker_reason(model)

    def unsupported_weights_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        scheme = model.scheme.lower()
        if model.format == "compressed-tensors" and not scheme.startswith("w8a8"):
            return Reason(
                "engine.vllm_ascend.weights_not_supported",
                "vLLM Ascend supports compressed-tensors weights in w8a8 only; quantize "
                "the model as w8a8-smoothquant, or serve it with vllm on a GPU",
            )
        return ""

    def translate(self, settings: ServingSettings) -> ServingCommand:
        argv = serve_command(settings)
        # Weights of compressed-tensors carry their quantization config; those of ModelSlim do not.
        if settings.model is not None and settings.model.format == "modelslim":
            argv += ["--quantization", "ascend"]
            if settings.model.scheme.lower() == "w8a8sc":
                argv += ["--load-format", "sharded_state"]
        argv += _ascend_graph_arguments(settings)
        command, programs = multi_node_command(settings, argv)
        return ServingCommand(
            argv=command,
            files={**programs, **score_files(settings)},
            environment={**ENVIRONMENT, **_ASCEND_ENVIRONMENT},
            key_variables=(KEY_VARIABLE,),
        )


def _ascend_graph_arguments(settings: ServingSettings) -> list[str]:
    if settings.is_set("graphs", "off"):
        return ["--enforce-eager"]
    if settings.is_set("graphs"):
        return ["--compilation-config", as_json(_DECODE_GRAPHS)]
    small = settings.chip.name.startswith("ascend-310p")
    return ["--enforce-eager"] if small else []
