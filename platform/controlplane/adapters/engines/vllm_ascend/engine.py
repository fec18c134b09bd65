"""vLLM on Ascend: the parser is vLLM's, images, graphs and quantized weights are its own."""

from __future__ import annotations

from controlplane.adapters.engines import ascend
from controlplane.adapters.engines.precisions import no_bfloat16
from controlplane.adapters.engines.servers import ContainerServer, Order, Translation
from controlplane.adapters.engines.vllm import arguments
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
    images=ascend.images(a2=_A2, a3=_A3, inference=_310P),
    metrics=arguments.METRICS,
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


class VllmAscendEngine(ContainerServer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm_ascend"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*_LIMITS, *no_bfloat16(chip))

    def refuses(self, model: ModelFacts, *, chip: Chip | None) -> str:
        scheme = model.scheme.lower()
        if model.format == "compressed-tensors" and not scheme.startswith("w8a8"):
            return (
                "of compressed-tensors vLLM Ascend is known to load w8a8 only; quantize it as "
                "w8a8-smoothquant, or serve it with vllm on a GPU"
            )
        return ""

    def translated(self, order: Order) -> Translation:
        argv = arguments.serve(order)
        # Weights of compressed-tensors say themselves how they are to be read; those of ModelSlim do not.
        if order.model is not None and order.model.format == "modelslim":
            argv += ["--quantization", "ascend"]
            if order.model.scheme.lower() == "w8a8sc":
                argv += ["--load-format", "sharded_state"]
        argv += _graphs(order)
        command, files = arguments.spanning(order, argv)
        return Translation(
            argv=command,
            files=files,
            environment={**arguments.ENVIRONMENT, **_ENVIRONMENT},
            key_variables=(arguments.KEY_VARIABLE,),
        )


def _graphs(order: Order) -> list[str]:
    if order.asks("graphs", "off"):
        return ["--enforce-eager"]
    if order.asks("graphs"):
        return ["--compilation-config", arguments.as_json(_DECODE_GRAPHS)]
    small = order.chip.name.startswith("ascend-310p")
    return ["--enforce-eager"] if small else []
