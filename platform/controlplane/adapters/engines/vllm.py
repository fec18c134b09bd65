"""The engine ``vllm``: vLLM's server in its own image, for every vendor that has one except Ascend
(``vllm_ascend``).

The arguments of ``vllm serve`` are shared: vLLM Ascend has the same parser.
"""

from __future__ import annotations

import json

from controlplane.adapters.engines import command_steps
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.ports.engines import EngineProfile, FlagsChecked, ModelFacts, Task

#: What starts the command on several nodes: all but the first have no HTTP of their own.
FOLLOW = "follow.py"
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CACHE_ROOT": "{work}/tmp/vllm",
}
#: Read by the server where ``--api-key`` is not given, so that the key is in no argument.
KEY_VARIABLE = "VLLM_API_KEY"

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
    argv += _switch(settings, "prefix_cache", "enable-prefix-caching")
    argv += _switch(settings, "chunked_prefill", "enable-chunked-prefill")
    return argv


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
    return command, {FOLLOW: command_steps.program_text("follow")}


def as_json(value: object) -> str:
    """Compact, as an argument."""
    return json.dumps(value, separators=(",", ":"))


def _switch(settings: ServingSettings, field: str, flag: str) -> list[str]:
    value = settings.spec[field]
    return {"on": [f"--{flag}"], "off": [f"--no-{flag}"]}.get(value, [])


PROFILE = EngineProfile(
    title="vLLM",
    versions=">=0.23,<0.34",
    default_version="0.23.0",
    images={"nvidia": "vllm/vllm-openai:v{version}"},
    metrics=METRICS,
    flags=FlagsChecked.PARSED,
    formats=frozenset({"compressed-tensors", "awq", "gptq", "fp8"}),
    remarks=(
        "Asks for the key on /v1 only: whoever reaches the port can read /metrics and /health.",
        "Counts no failures of its own; those that callers saw are counted at the gateway.",
    ),
    sources=(
        "vLLM 0.23.0 and 0.33.0: vllm/engine/arg_utils.py and the command-line arguments of its server",
        "https://docs.vllm.ai/en/latest/configuration/serve_args.html",
    ),
)

_LIMITS = (
    FieldLimit(
        field="queue_size",
        reason="vLLM lets any number wait; what may wait is set at the gateway's keys",
    ),
)


class VllmEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return _LIMITS

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """Quantized weights carry their quantization config, so no ``--quantization`` is given."""
        argv = serve_command(settings)
        if settings.is_set("kv_precision", "fp8"):
            argv += ["--kv-cache-dtype", "fp8"]
        if settings.is_set("graphs", "off"):
            argv.append("--enforce-eager")
        command, files = multi_node_command(settings, argv)
        return ServingCommand(
            argv=command,
            files=files,
            environment=ENVIRONMENT,
            key_variables=(KEY_VARIABLE,),
        )
