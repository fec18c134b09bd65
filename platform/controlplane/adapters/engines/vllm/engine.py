"""vLLM on the cards of every vendor that has an image for it, but Ascend's, which have a build of their own."""

from __future__ import annotations

from controlplane.adapters.engines.servers import ContainerServer, Order, Translation
from controlplane.adapters.engines.vllm import arguments
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.ports.engines import EngineProfile, FlagsChecked, ModelFacts, Task

PROFILE = EngineProfile(
    title="vLLM",
    versions=">=0.23,<0.34",
    default_version="0.23.0",
    images={"nvidia": "vllm/vllm-openai:v{version}"},
    metrics=arguments.METRICS,
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


class VllmEngine(ContainerServer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return _LIMITS

    def translated(self, order: Order) -> Translation:
        """Quantized weights say themselves how they are to be read, so no ``--quantization`` is given."""
        argv = arguments.serve(order)
        if order.asks("kv_precision", "fp8"):
            argv += ["--kv-cache-dtype", "fp8"]
        if order.asks("graphs", "off"):
            argv.append("--enforce-eager")
        command, files = arguments.spanning(order, argv)
        return Translation(
            argv=command,
            files=files,
            environment=arguments.ENVIRONMENT,
            key_variables=(arguments.KEY_VARIABLE,),
        )
