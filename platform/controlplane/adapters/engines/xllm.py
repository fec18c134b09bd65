"""The engine ``xllm``: JD's xLLM, on Ascend in its release images and on NVIDIA in an image that a company builds.

Its options are gflags, ``--name=value``; nothing of it is on a registry of packages, so a test compares the
rendered options with the list of those that its source declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import container_commands, container_engine, tool_parsers
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, field_finding
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    ModelFacts,
)

_START = "start_xllm.py"
#: Where release images have the program.
_PROGRAM = "/usr/local/bin/xllm"
#: xLLM's default of ``max_seqs_per_batch``.
_DEFAULT_BATCH = 1024
#: Slots of a KV cache block, as its documentation starts it on each kind of device.
_BLOCK_SIZES = {"npu": 128, "cuda": 32}

_QWEN = frozenset({"Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"})
_QWEN_VISION = frozenset(
    {
        "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration",
        "Qwen3VLForConditionalGeneration",
        "Qwen3VLMoeForConditionalGeneration",
    }
)
#: Architectures that its builds register (``xllm/models/models.h``), by kind of device.
ARCHITECTURES: Mapping[str, frozenset[str]] = {
    "npu": _QWEN
    | _QWEN_VISION
    | {
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
        "GlmMoeDsaForCausalLM",
        "KimiK25ForConditionalGeneration",
        "LlamaForCausalLM",
        "MiniCPMV",
        "MiniMaxM2ForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
    },
    "cuda": _QWEN | _QWEN_VISION | {"MiMoForCausalLM"},
}

#: Options that the product sets, or that read others from elsewhere.
_RESERVED = frozenset(
    {
        "--backend",
        "--config-json-file",
        "--device-id",
        "--devices",
        "--enable-service-routing",
        "--etcd-addr",
        "--flagfile",
        "--fromenv",
        "--master-node-addr",
        "--rank-tablefile",
        "--task",
        "--tryfromenv",
    }
)

PROFILE = EngineProfile(
    title="xLLM",
    versions=">=0.10,<0.11",
    default_version="0.10.0",
    images={
        # Built from docker/engines/xllm: for NVIDIA there is an image to compile in, but no release.
        "nvidia": "ninefold-engine-xllm:{version}-cuda",
        **container_engine.ascend_images(
            a2="quay.io/jd_xllm/xllm-ai:xllm-{version}-release-hb-rc2-arm",
            a3="quay.io/jd_xllm/xllm-ai:xllm-{version}-release-hc-rc2-arm",
        ),
    },
    operations={
        ModelKind.TEXT: frozenset({Operation.CHAT, Operation.COMPLETIONS, Operation.MESSAGES}),
        ModelKind.EMBEDDING: frozenset({Operation.EMBEDDINGS}),
    },
    metrics={
        "requests_running": "num_running_requests",
        "requests_waiting": "num_waiting_requests",
        "requests_received": "server_request_in_total",
        "requests_ok": "server_request_total_ok",
        "requests_failed": "server_request_total_fail",
        "prompt_tokens": "num_processing_tokens_total_prompt",
        "output_tokens": "num_processing_tokens_total_generated",
        "time_to_first_token": "time_to_first_token_latency_milliseconds",
        "inter_token_latency": "inter_token_latency_milliseconds",
        "latency": "end_2_end_latency_milliseconds",
        "kv_cache_usage": "kv_cache_utilization_perc",
        "preemptions": "num_preempted_requests",
    },
    flags=ArgumentVerification.UNVERIFIED,
    formats=frozenset({"modelslim", "compressed-tensors", "fp8"}),
    remarks=(
        Reason(
            "engine.xllm.no_authentication",
            "Does not require an API key, and the port has pages of brpc that show and change its "
            "options: restrict access to the gateway with a network policy.",
        ),
        Reason(
            "engine.xllm.metrics_path",
            "xLLM exports its metrics in the format of Prometheus at /brpc_metrics, and latencies "
            "in milliseconds.",
        ),
        Reason(
            "engine.xllm.image_names",
            "Not run on hardware. The release images for Ascend have tags for arm and for x86, of "
            "which the arm tag is rendered; the tag for Ascend 910C follows that of the development "
            "images. For NVIDIA, build the image from docker/engines/xllm.",
        ),
        Reason(
            "engine.xllm.operations_not_offered",
            "Not offered: images, because xLLM has them at /v1/image/generation and not where "
            "clients of OpenAI send them, and rerank, because xLLM scores Qwen3-Reranker without "
            "its template and by the log probability of the first token.",
        ),
    ),
    sources=(
        "jd-opensource/xllm at 87e8d6ed (0.10.0): xllm/core/framework/config, xllm/server/xllm_server.cpp, "
        "xllm/models/models.h, xllm/parser, xllm/function_call, docs/en",
        "jd-opensource/xllm at 87e8d6ed: docs/project/RELEASE.md and docs/en/getting_started/quick_start.md, "
        "for images",
    ),
)

_PRECISION = Reason(
    "engine.xllm.precision_from_config",
    "xLLM uses the precision in the config.json of the model",
)
_LIMITS = (
    FieldLimit.of(
        "context_length",
        (),
        "engine.xllm.context_length_from_config",
        "xLLM serves the context length in the config.json of the model",
    ),
    FieldLimit(field="precision", values=("float32", "bfloat16", "float16"), reason=_PRECISION),
    FieldLimit.of(
        "kv_precision",
        ("fp8",),
        "engine.xllm.kv_precision_not_supported",
        "xLLM stores the KV cache in the precision of the weights on this chip",
    ),
    FieldLimit.of(
        "parallel.pipeline",
        (),
        "engine.xllm.pipeline_not_supported",
        "xLLM has no pipeline parallelism of text models",
    ),
)


class XllmEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "xllm"
    engine_profile = PROFILE
    field_limits = _LIMITS
    parsers = "xllm"
    reserved_arguments = _RESERVED
    one_node_because = Reason(
        "engine.xllm.rank_table_required",
        "xLLM requires a rank table with the address of every card, which is "
        "not known before the cards are allocated",
    )

    def check_engine_rules(self, spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
        copies = spec["parallel"]["data"]
        if copies & (copies - 1):
            yield field_finding(
                "parallel.data",
                "engine.xllm.data_parallel_power_of_two",
                "parallel.data must be a power of 2 for xLLM, got {copies}",
                copies=copies,
            )

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        known = ARCHITECTURES.get(chip.torch_device if chip is not None else "npu", frozenset())
        if model.architecture in known:
            return ""
        return Reason(
            "engine.xllm.architecture_not_supported",
            "xLLM serves {architectures} here",
            architectures=", ".join(sorted(known)),
        )

    def unsupported_weights_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        """On Ascend it reads ModelSlim's description, on CUDA weights in 8-bit floating point."""
        if chip is None:
            return ""
        if chip.torch_device == "npu":
            supported, required = model.format == "modelslim", "ModelSlim"
        else:
            supported = model.format == "fp8" or (
                model.format == "compressed-tensors" and model.scheme.lower().startswith("fp8")
            )
            required = "fp8"
        if supported:
            return ""
        return Reason(
            "engine.xllm.weights_not_supported",
            "xLLM on {chip} supports {required} weights only",
            chip=chip.label,
            required=required,
        )

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """One process for each card; the copies of ``parallel.data`` divide the attention only."""
        spec, plan = settings.spec, settings.plan
        batch = spec["concurrency"] or _DEFAULT_BATCH
        options = {
            "model": MODEL,
            "model_id": spec["model_name"],
            "master_node_addr": f"127.0.0.1:{settings.master_port}",
            "max_memory_utilization": f"{spec['memory_fraction']:g}",
            "block_size": _BLOCK_SIZES[settings.chip.torch_device],
            "max_seqs_per_batch": batch,
            # Of those computed and those that wait together.
            "max_concurrent_requests": batch + spec["queue_size"],
            **_parallel_options(settings),
            **_kind_options(settings),
        }
        for field, option in _SWITCHES.items():
            if spec[field] != "auto":
                options[option] = "true" if spec[field] == "on" else "false"
        command = [_PROGRAM, *(f"--{name}={value}" for name, value in options.items())]
        start = ["{python}", f"{{work}}/{_START}", "{port:http}", str(plan.cards)]
        return ServingCommand(
            argv=(*start, settings.chip.torch_device, *command, *(spec["extra_args"] or ())),
            files={_START: container_commands.read_bundled_program("start_xllm")},
        )


#: Fields that are on or off, and xLLM's options; ``auto`` leaves them at xLLM's defaults.
_SWITCHES = {
    "prefix_cache": "enable_prefix_cache",
    "chunked_prefill": "enable_chunked_prefill",
    "graphs": "enable_graph",
}


def _parallel_options(settings: ServingSettings) -> dict[str, int]:
    plan = settings.plan
    options = {"dp_size": plan.data} if plan.data > 1 else {}
    return options | ({"ep_size": plan.expert} if plan.expert > 1 else {})


def _kind_options(settings: ServingSettings) -> dict[str, str]:
    """The task of a model that embeds; the parsers of one that generates text."""
    kind = settings.model.kind if settings.model is not None else None
    if kind is ModelKind.EMBEDDING:
        return {"task": "embed"}
    parsers = tool_parsers.parser_names(
        settings.spec, model=settings.model, engine="xllm", version=settings.version
    )
    options = {"tool_call_parser": parsers.tools, "reasoning_parser": parsers.reasoning}
    return {name: value for name, value in options.items() if value}
