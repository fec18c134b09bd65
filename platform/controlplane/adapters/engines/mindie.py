"""The engine ``mindie``: Huawei's MindIE server, on Ascend only: a configuration file and a daemon.

``config.json`` is the published default with everything replaced that a replica needs otherwise. The default
has TLS with certificates that do not exist, listens on 127.0.0.1, and ends answers after 512 tokens in a window
of 2,560 (``programs/mindie_config.json``, from MindIE-LLM at 8b4871a).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import container_commands, container_engine
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.adapters.engines.tool_parsers import AUTO, OFF, parser_names
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, field_finding
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.engines import ArgumentVerification, EngineProfile, EngineTask, ModelFacts

#: The port of health and administration, and that of metrics, beside the HTTP port.
MANAGEMENT, METRICS = "management", "metrics"
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - inside of its container
#: Tokens that its prefill takes at once, at least.
_PREFILL_TOKENS = 8192
#: Where neither spec nor model says how long a conversation may be.
_DEFAULT_LENGTH = 32_768
_DEFAULT_BATCH = 200
_DEFAULT_PREFILL_BATCH = 50
#: Tokens of an input, and of the inputs that its prefill takes at once, at most (``CheckParam`` of
#: ``src/config_manager/model_deploy_config.cpp`` and ``schedule_config.cpp`` at 8b4871a).
_MAX_INPUT_TOKENS = 4_194_304
#: Requests at once on Atlas 300I, at most (docs/zh/user_guide/user_manual/service_parameter_configuration.md).
_MAX_BATCH_ON_INFERENCE_CHIPS = 2000
#: What a name of a model has with other engines and not with MindIE (``CheckModelNameLength`` of
#: ``src/config_manager/model_deploy_config.cpp``).
_NOT_IN_MODEL_NAME = re.compile(r"[:/]|[._-]$")
#: MindIE's names of model types whose options it documents (docs/zh/user_guide/feature at 8b4871a).
_MODEL_TYPES = {
    "ChatGLMModel": "chatglm",
    "DeepseekV2ForCausalLM": "deepseekv2",
    "DeepseekV3ForCausalLM": "deepseekv2",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}


def mindie_configuration(settings: ServingSettings) -> str:
    """The file; its placeholders are filled by the cluster."""
    whole = json.loads(container_commands.bundled_text("mindie_config.json"))
    whole["ServerConfig"] |= _server_defaults()
    backend = whole["BackendConfig"]
    cards = settings.plan.cards
    backend |= {
        "npuDeviceIds": [list(range(cards))],
        "tokenizerProcessNumber": 8,
        "multiNodesInferEnabled": False,
        "interNodeTLSEnabled": False,
    }
    length = _max_sequence_length(settings)
    deploy = backend["ModelDeployConfig"]
    # The prompt leaves room for at least one token; the caller sets the response length.
    longest = min(length - 1, _MAX_INPUT_TOKENS)
    deploy |= {"maxSeqLen": length, "maxInputTokenLen": longest, "truncation": 0}
    deploy["ModelConfig"][0] |= {
        "modelName": settings.spec["model_name"],
        "modelWeightPath": MODEL,
        "worldSize": cards,
        "cpuMemSize": 0,
        "npuMemSize": -1,
        "backendType": "atb",
        "trustRemoteCode": False,
    }
    deploy["ModelConfig"][0].setdefault("models", {}).update(_model_options(settings))
    batch = settings.spec["concurrency"] or _DEFAULT_BATCH
    backend["ScheduleConfig"] |= {
        "maxBatchSize": batch,
        "maxPrefillBatchSize": min(_DEFAULT_PREFILL_BATCH, batch),
        "maxPrefillTokens": max(_PREFILL_TOKENS, longest),
        # No answer is cut off before the window is full.
        "maxIterTimes": length,
    }
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    # A port is a number in this file, and a placeholder is a text.
    for name in ("http", MANAGEMENT, METRICS):
        text = text.replace(f'"{{port:{name}}}"', f"{{port:{name}}}")
    return text


def _model_options(settings: ServingSettings) -> dict[str, Any]:
    """Options of the model by MindIE's name of its type: parsers of tool calls and of reasoning.

    Without a name of a parser MindIE takes that of the type, which is wrong for DeepSeek-V3.1 only.

    :raises ValueError: if the type has no such options.
    """
    names = parser_names(
        settings.spec, model=settings.model, engine="mindie", version=settings.version
    )
    options: dict[str, Any] = {}
    if names.tools:
        options["tool_call_options"] = {"tool_call_parser": names.tools}
    if names.reasoning:
        options["enable_reasoning"] = True
    architecture = settings.model.architecture if settings.model is not None else ""
    if options and architecture not in _MODEL_TYPES:
        raise ValueError(_unknown_model_type(architecture))
    return {_MODEL_TYPES[architecture]: options} if options else {}


def _unknown_model_type(architecture: str) -> Reason:
    return Reason(
        "engine.mindie.model_type_unknown",
        "MindIE documents no parsers for models of the architecture {architecture}",
        architecture=architecture,
    )


def _server_defaults() -> dict[str, Any]:
    return {
        # Of its own container: probes and the gateway come from outside of it.
        "ipAddress": _EVERY_ADDRESS,
        "managementIpAddress": _EVERY_ADDRESS,
        "port": "{port:http}",
        "managementPort": "{port:management}",
        "metricsPort": "{port:metrics}",
        "allowAllZeroIpListening": True,
        "httpsEnabled": False,
        "interCommTLSEnabled": False,
        "openAiSupport": "vllm",
        "inferMode": "standard",
        "fullTextEnabled": False,
        "tokenTimeout": 600,
        "e2eTimeout": 600,
    }


def _max_sequence_length(settings: ServingSettings) -> int:
    context = settings.model.context_length if settings.model else 0
    return int(settings.spec["context_length"] or context or _DEFAULT_LENGTH)


PROFILE = EngineProfile(
    title="MindIE",
    versions=">=2.3,<2.4",
    default_version="2.3.0",
    # Built from docker/engines/mindie: in the published images root alone may read MindIE.
    images=container_engine.ascend_images(
        a2="ninefold-engine-mindie:{version}-910b",
        a3="ninefold-engine-mindie:{version}-a3",
        inference="ninefold-engine-mindie:{version}-310p",
    ),
    operations={ModelKind.TEXT: frozenset({Operation.CHAT, Operation.COMPLETIONS})},
    metrics={
        "requests_running": "num_requests_running",
        "requests_waiting": "num_requests_waiting",
        "requests_received": "request_received_total",
        "requests_ok": "request_success_total",
        "requests_failed": "request_failed_total",
        "prompt_tokens": "prompt_tokens_total",
        "output_tokens": "generation_tokens_total",
        "time_to_first_token": "time_to_first_token_seconds",
        "time_per_output_token": "time_per_output_token_seconds",
        "latency": "e2e_request_latency_seconds",
        "kv_cache_usage": "npu_cache_usage_perc",
        "prefix_cache_hit_rate": "npu_prefix_cache_hit_rate",
        "output_tokens_per_second": "avg_generation_throughput_toks_per_s",
        "preemptions": "num_preemptions_total",
    },
    flags=ArgumentVerification.UNVERIFIED,
    formats=frozenset({"modelslim"}),
    remarks=(
        Reason(
            "engine.mindie.no_authentication",
            "Does not require an API key: restrict access to the gateway with a network policy.",
        ),
        Reason(
            "engine.mindie.root_only_image",
            "In the published images of MindIE only root can read its files, but "
            "pods do not run as root: build the image from docker/engines/mindie.",
        ),
        Reason(
            "engine.mindie.separate_metrics_port", "MindIE exports its metrics on a separate port."
        ),
    ),
    sources=(
        "MindIE-LLM at 8b4871a: conf/config.json and docs/zh/user_guide",
        "gpustack-runner 0.1.32.post1: the images; gpustack/runner at 04a1aa2: pack/cann/Dockerfile",
    ),
)

_ONE_LAYOUT = Reason(
    "engine.mindie.parallelism_not_supported", "only tensor parallelism is supported with MindIE"
)
_BY_ITSELF = Reason(
    "engine.mindie.graphs_not_configurable", "MindIE sets this option automatically"
)
_PLUGIN = Reason(
    "engine.mindie.unverified_plugin",
    "this option is implemented by a plug-in of MindIE whose settings are not verified",
)
_CONFIG_ONLY = Reason(
    "engine.mindie.config_only",
    "MindIE reads its options from a configuration file that has no such field",
)
_LIMITS = (
    FieldLimit.of(
        "queue_size",
        (),
        "engine.mindie.queue_size_not_supported",
        "MindIE limits the number of connections, not of queued requests",
    ),
    FieldLimit.of(
        "precision",
        ("float32", "bfloat16", "float16"),
        "engine.mindie.precision_from_config",
        "MindIE uses the precision in the config.json of the model",
    ),
    FieldLimit.of(
        "kv_precision",
        ("fp8",),
        "engine.mindie.kv_precision_not_configurable",
        "MindIE stores the KV cache in the precision of the weights, or in the "
        "format written by ModelSlim",
    ),
    FieldLimit(field="prefix_cache", values=("on", "off"), reason=_PLUGIN),
    FieldLimit(field="chunked_prefill", values=("on", "off"), reason=_PLUGIN),
    FieldLimit(field="graphs", values=("on", "off"), reason=_BY_ITSELF),
    FieldLimit.of(
        "tool_call_parser",
        (OFF,),
        "engine.mindie.tool_call_parser_always",
        "MindIE always parses tool calls, by the parser of the model's type",
    ),
    FieldLimit(field="extra_args", reason=_CONFIG_ONLY),
    FieldLimit(field="parallel.pipeline", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.data", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.expert", values=("on",), reason=_ONE_LAYOUT),
)


class MindieEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "mindie"
    engine_profile = PROFILE
    field_limits = _LIMITS
    parsers = "mindie"
    one_node_because = Reason(
        "engine.mindie.rank_table_required",
        "MindIE requires a rank table with the address of every card, which is "
        "not known before the cards are allocated",
    )

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        if model is None or model.architecture in _MODEL_TYPES:
            return self.field_limits
        unknown = _unknown_model_type(model.architecture)
        return (
            *self.field_limits,
            FieldLimit(field="tool_call_parser", reason=unknown),
            FieldLimit(field="reasoning_parser", reason=unknown),
        )

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        found = super().check(task, spec, chip=chip, model=model)
        if found or chip is None or not container_engine.is_inference_chip(chip):
            return found
        concurrency = self.normalise(task, spec)["concurrency"]
        if (concurrency or 0) <= _MAX_BATCH_ON_INFERENCE_CHIPS:
            return found
        return (
            field_finding(
                "concurrency",
                "engine.mindie.concurrency_too_large",
                "concurrency must be at most {limit} with MindIE on {chip}, got {value}",
                limit=_MAX_BATCH_ON_INFERENCE_CHIPS,
                chip=chip.label,
                value=concurrency,
            ),
        )

    def check_engine_rules(self, spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
        if _NOT_IN_MODEL_NAME.search(spec["model_name"]):
            yield field_finding(
                "model_name",
                "engine.mindie.invalid_model_name",
                "model_name must have no : or / for MindIE, and end with a letter or digit, got {name}",
                name=repr(spec["model_name"]),
            )
        reasoning = spec["reasoning_parser"]
        if reasoning not in (None, "", AUTO, OFF):
            yield field_finding(
                "reasoning_parser",
                "engine.mindie.reasoning_parser_by_type",
                "reasoning_parser must be auto, off or empty for MindIE, which has one for each "
                "type of model, got {name}",
                name=repr(reasoning),
            )

    def translate(self, settings: ServingSettings) -> ServingCommand:
        return ServingCommand(
            argv=("bash", "{work}/start.sh"),
            files={
                "config.json": mindie_configuration(settings),
                # It sets up the image's libraries and starts the daemon.
                "start.sh": container_commands.bundled_text("start_mindie.sh"),
            },
            environment={
                "MIES_CONFIG_JSON_PATH": "{work}/config.json",
                # Without it nothing is measured.
                "MIES_SERVICE_MONITOR_MODE": "1",
                "MINDIE_LLM_FRAMEWORK_BACKEND": "ATB",
                "NPU_MEMORY_FRACTION": f"{settings.spec['memory_fraction']:g}",
                # Inputs are mounted read-only and belong to whoever stored them.
                "MINDIE_CHECK_INPUTFILES_PERMISSION": "0",
            },
            ports=(MANAGEMENT, METRICS),
            health="/v2/health/ready",
            # Where this port differs from the HTTP port, MindIE answers there and nowhere else.
            health_port=MANAGEMENT,
        )
