"""The engine ``vllm_ascend``: vLLM with Ascend's plug-in in its own images.

The parser is vLLM's; images, graphs and quantized weights are its own.
"""

from __future__ import annotations

from controlplane.adapters.engines import container_engine, vllm
from controlplane.adapters.engines.container_engine import bfloat16_limits
from controlplane.adapters.engines.container_serving import (
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.ports.engines import EngineProfile, FlagsChecked, ModelFacts, Task

_A2 = "quay.io/ascend/vllm-ascend:v{version}"
_A3 = f"{_A2}-a3"
_310P = f"{_A2}-310p"
PROFILE = EngineProfile(
    title="vLLM Ascend",
    versions=">=0.23,<0.24",
    default_version="0.23.0",
    images=container_engine.ascend_images(a2=_A2, a3=_A3, inference=_310P),
    metrics=vllm.METRICS,
    flags=FlagsChecked.PARSED,
    formats=frozenset({"compressed-tensors", "modelslim"}),
    remarks=(
        "Asks for the key on /v1 only: whoever reaches the port can read /metrics and /health.",
        "Across nodes it may have to be told the network interface (HCCL_SOCKET_IFNAME and its like), which "
        "is the cluster's to know.",
    ),
    sources=(
        "vLLM 0.23.0: vllm/engine/arg_utils.py, which reads the arguments",
        "vllm-project/vllm-ascend at 182b75ea84: docs/source/user_guide",
    ),
)

_ENVIRONMENT = {
    "TASK_QUEUE_ENABLE": "1",
    "HCCL_BUFFSIZE": "1024",
    "HCCL_OP_EXPANSION_MODE": "AIV",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
}
_LIMITS = (
    FieldLimit(
        field="queue_size",
        reason="vLLM lets any number wait; what may wait is set at the gateway's keys",
    ),
    FieldLimit(
        field="kv_precision",
        values=("fp8",),
        reason="vLLM Ascend keeps keys and values in the precision of the weights, or as ModelSlim wrote them",
    ),
)
#: Graphs of the decoding steps only; what vLLM Ascend names as the setting for small chips.
_DECODE_GRAPHS = {"cudagraph_mode": "FULL_DECODE_ONLY"}


class VllmAscendEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm_ascend"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*_LIMITS, *bfloat16_limits(chip))

    def unsupported_weights(self, model: ModelFacts, *, chip: Chip | None) -> str:
        scheme = model.scheme.lower()
        if model.format == "compressed-tensors" and not scheme.startswith("w8a8"):
            return (
                "of compressed-tensors vLLM Ascend is known to load w8a8 only; quantize it as "
                "w8a8-smoothquant, or serve it with vllm on a GPU"
            )
        return ""

    def translate(self, settings: ServingSettings) -> ServingCommand:
        argv = vllm.serve_command(settings)
        # Weights of compressed-tensors carry their quantization config; those of ModelSlim do not.
        if settings.model is not None and settings.model.format == "modelslim":
            argv += ["--quantization", "ascend"]
            if settings.model.scheme.lower() == "w8a8sc":
                argv += ["--load-format", "sharded_state"]
        argv += _graphs(settings)
        command, files = vllm.multi_node_command(settings, argv)
        return ServingCommand(
            argv=command,
            files=files,
            environment={**vllm.ENVIRONMENT, **_ENVIRONMENT},
            key_variables=(vllm.KEY_VARIABLE,),
        )


def _graphs(settings: ServingSettings) -> list[str]:
    if settings.is_set("graphs", "off"):
        return ["--enforce-eager"]
    if settings.is_set("graphs"):
        return ["--compilation-config", vllm.as_json(_DECODE_GRAPHS)]
    small = settings.chip.name.startswith("ascend-310p")
    return ["--enforce-eager"] if small else []
