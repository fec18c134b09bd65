"""MindIE on Ascend: a configuration file and a daemon."""

from __future__ import annotations

from controlplane.adapters.engines import ascend
from controlplane.adapters.engines.mindie import configuration
from controlplane.adapters.engines.servers import ContainerServer, Order, Translation
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.ports.engines import EngineProfile, FlagsChecked, ModelFacts, Task

PROFILE = EngineProfile(
    title="MindIE",
    versions=">=2.3,<2.4",
    default_version="2.3.0",
    # Built from docker/engines/mindie: in the published images root alone may read MindIE.
    images=ascend.images(
        a2="ninefold-engine-mindie:{version}-910b",
        a3="ninefold-engine-mindie:{version}-a3",
        inference="ninefold-engine-mindie:{version}-310p",
    ),
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
    flags=FlagsChecked.UNVERIFIED,
    formats=frozenset({"modelslim"}),
    remarks=(
        "Asks for no key: a network policy must let nobody but the gateway reach it.",
        "In the published images of MindIE only root can read its files, and pods do not run as root: build the "
        "image from docker/engines/mindie.",
        "Prints its figures at a port of their own.",
    ),
    sources=(
        "MindIE-LLM at 8b4871a: conf/config.json and docs/zh/user_guide",
        "gpustack-runner 0.1.32.post1: the images; gpustack/runner at 04a1aa2: pack/cann/Dockerfile",
    ),
)

_ONE_LAYOUT = "MindIE divides a replica by tensor only, as it is written here"
_BY_ITSELF = "MindIE decides that by itself"
_PLUGIN = "that is a plug-in of MindIE whose settings nobody has verified here"
_LIMITS = (
    FieldLimit(
        field="queue_size", reason="MindIE has a bound on connections, not on waiting requests"
    ),
    FieldLimit(
        field="precision",
        values=("float32", "bfloat16", "float16"),
        reason="MindIE computes in the precision that the model's config.json names",
    ),
    FieldLimit(
        field="kv_precision",
        values=("fp8",),
        reason="MindIE keeps keys and values in the precision of the weights, or as ModelSlim wrote them",
    ),
    FieldLimit(field="prefix_cache", values=("on", "off"), reason=_PLUGIN),
    FieldLimit(field="chunked_prefill", values=("on", "off"), reason=_PLUGIN),
    FieldLimit(field="graphs", values=("on", "off"), reason=_BY_ITSELF),
    FieldLimit(field="parallel.pipeline", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.data", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.expert", values=("on",), reason=_ONE_LAYOUT),
)


class MindieEngine(ContainerServer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "mindie"
    one_node_because = (
        "MindIE finds other nodes by a rank table with the address of every card, which is not known before they "
        "are given"
    )

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return _LIMITS

    def translated(self, order: Order) -> Translation:
        return Translation(
            argv=("bash", "{work}/start.sh"),
            files={
                "config.json": configuration.configuration(order),
                "start.sh": configuration.start_program(),
            },
            environment={
                "MIES_CONFIG_JSON_PATH": "{work}/config.json",
                # Without it nothing is measured.
                "MIES_SERVICE_MONITOR_MODE": "1",
                "MINDIE_LLM_FRAMEWORK_BACKEND": "ATB",
                "NPU_MEMORY_FRACTION": f"{order.spec['memory_fraction']:g}",
                # Inputs are mounted read-only and belong to whoever stored them.
                "MINDIE_CHECK_INPUTFILES_PERMISSION": "0",
            },
            ports=(configuration.MANAGEMENT, configuration.METRICS),
            health="/v2/health/ready",
            # Where this port differs from the HTTP port, MindIE answers there and nowhere else.
            health_port=configuration.MANAGEMENT,
        )
