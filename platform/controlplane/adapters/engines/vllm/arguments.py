"""``vllm serve`` as arguments; vLLM Ascend has the same parser."""

from __future__ import annotations

import json

from controlplane.adapters.engines import sequence
from controlplane.adapters.engines.servers import MODEL, Order

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


def serve(order: Order) -> list[str]:
    """What every chip is given alike."""
    spec, plan = order.spec, order.plan
    argv = ["vllm", "serve", MODEL, "--served-model-name", spec["model_name"]]
    argv += ["--host", "0.0.0.0", "--port", "{port:http}"]  # noqa: S104 - inside of its container
    argv += ["--dtype", order.precision]
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
    argv += _switch(order, "prefix_cache", "enable-prefix-caching")
    argv += _switch(order, "chunked_prefill", "enable-chunked-prefill")
    return argv


def spanning(order: Order, argv: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and files of a replica on several nodes; on one node the command as it is."""
    if order.nodes == 1:
        return tuple(argv), {}
    argv = [
        *argv,
        *("--distributed-executor-backend", "mp", "--nnodes", str(order.nodes)),
        *("--node-rank", "{index}", "--master-addr", "{leader}"),
        *("--master-port", str(order.master_port)),
    ]
    command = ("{python}", f"{{work}}/{FOLLOW}", "{port:http}", *argv)
    return command, {FOLLOW: sequence.program("follow")}


def as_json(value: object) -> str:
    """Compact, as an argument."""
    return json.dumps(value, separators=(",", ":"))


def _switch(order: Order, field: str, flag: str) -> list[str]:
    value = order.spec[field]
    return {"on": [f"--{flag}"], "off": [f"--no-{flag}"]}.get(value, [])
