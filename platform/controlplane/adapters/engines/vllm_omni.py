"""The engine ``vllm_omni``: vLLM-Omni, which generates images and videos with pipelines of diffusers, and speech,
on NVIDIA and Ascend.

Its command is ``vllm serve … --omni``: arguments of vLLM that a diffusion pipeline reads, and a few of its own. A
model of speech runs in stages, which a configuration in its package (``vllm_omni/deploy``) places on one card; an
argument replaces the value of every stage, so only what may be equal in all is given.
"""

from __future__ import annotations

from controlplane.adapters.engines import container_engine
from controlplane.adapters.engines.container_serving import (
    MODEL,
    ContainerServingEngine,
    ServingCommand,
    ServingSettings,
)
from controlplane.adapters.engines.vllm import (
    ENVIRONMENT,
    KEY_VARIABLE,
    OPEN_ENDPOINTS,
    QUEUE_SIZE_LIMIT,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldLimit
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    ModelFacts,
    RenderRefused,
)

#: Pipelines from text to image that its table of models names for Ascend, and the network of each, by which the
#: catalog knows a model.
ASCEND_PIPELINES = {
    "ErnieImagePipeline": "ErnieImageTransformer2DModel",
    "Flux2KleinPipeline": "Flux2Transformer2DModel",
    "LongCatImagePipeline": "LongCatImageTransformer2DModel",
    "QwenImagePipeline": "QwenImageTransformer2DModel",
    "StableDiffusionXLPipeline": "",
    "ZImagePipeline": "ZImageTransformer2DModel",
}
#: Those that it names for NVIDIA. The network of Stable Diffusion XL is that of 1.5 too, which it does not serve:
#: of such a model the catalog states the pipeline.
NVIDIA_PIPELINES = ASCEND_PIPELINES | {
    "Flux2Pipeline": "Flux2Transformer2DModel",
    "FluxPipeline": "FluxTransformer2DModel",
    "GlmImagePipeline": "GlmImageTransformer2DModel",
    "HiDreamImagePipeline": "HiDreamImageTransformer2DModel",
    "OmniGen2Pipeline": "OmniGen2Transformer2DModel",
    "OvisImagePipeline": "OvisImageTransformer2DModel",
    "StableDiffusion3Pipeline": "SD3Transformer2DModel",
}

#: Those from text to video.
ASCEND_VIDEO_PIPELINES = {"WanPipeline": "WanTransformer3DModel"}
NVIDIA_VIDEO_PIPELINES = ASCEND_VIDEO_PIPELINES | {
    "HunyuanVideo15Pipeline": "HunyuanVideo15Transformer3DModel",
    "LTX2Pipeline": "LTX2VideoTransformer3DModel",
}

#: Models of speech that its table of models names for NVIDIA and Ascend, and whose stages are in its package.
SPEECH_ARCHITECTURES = frozenset({"Qwen3TTSForConditionalGeneration"})

PROFILE = EngineProfile(
    title="vLLM-Omni",
    versions=">=0.28,<0.31",
    default_version="0.28.0",
    images={
        "nvidia": "vllm/vllm-omni:v{version}",
        **container_engine.ascend_images(
            a2="quay.io/ascend/vllm-omni:v{version}", a3="quay.io/ascend/vllm-omni:v{version}-a3"
        ),
    },
    operations={
        ModelKind.IMAGE: frozenset({Operation.IMAGES}),
        ModelKind.VIDEO: frozenset({Operation.VIDEOS}),
        ModelKind.SPEECH: frozenset({Operation.SPEECH}),
    },
    metrics={
        "requests_running": "vllm_omni:num_requests_running",
        "requests_waiting": "vllm_omni:num_requests_waiting",
        "requests_ok": "vllm_omni:requests_success_total",
        "latency": "vllm_omni:e2e_request_latency_s",
    },
    flags=ArgumentVerification.PARSED,
    remarks=(
        OPEN_ENDPOINTS,
        Reason(
            "engine.vllm_omni.operations_not_offered",
            "Generates images, videos and speech from text, a video in one request "
            "(/v1/videos/sync). Video jobs (/v1/videos), edits of images, and uploads and lists of "
            "voices (/v1/audio/voices), which vLLM-Omni has too, are not offered. Not run on hardware.",
        ),
    ),
    sources=(
        "vLLM-Omni 0.28.0 and 0.30.0: vllm_omni/entrypoints/cli/serve.py and "
        "vllm_omni/entrypoints/openai/api_server.py",
        "vLLM-Omni at 00218e1c: docs/models/supported_models.md, table of NVIDIA and Ascend; "
        "docs/getting_started/installation for images",
        "vLLM-Omni 0.28.0 and 0.30.0: vllm_omni/deploy/qwen3_tts.yaml and "
        "vllm_omni/entrypoints/openai/serving_speech.py; docs/serving/speech_api.md at 078de2d1",
    ),
)

_NO_TEXT = Reason(
    "engine.vllm_omni.text_option", "this option applies to models that generate text only"
)
_ONE_LAYOUT = Reason(
    "engine.vllm_omni.parallelism_not_supported",
    "only tensor parallelism is rendered for image and video pipelines",
)
_LIMITS = (
    QUEUE_SIZE_LIMIT,
    FieldLimit(field="context_length", reason=_NO_TEXT),
    FieldLimit(field="kv_precision", values=("fp8",), reason=_NO_TEXT),
    FieldLimit(field="prefix_cache", values=("on", "off"), reason=_NO_TEXT),
    FieldLimit(field="chunked_prefill", values=("on", "off"), reason=_NO_TEXT),
    FieldLimit(field="tool_call_parser", reason=_NO_TEXT),
    FieldLimit(field="reasoning_parser", reason=_NO_TEXT),
    FieldLimit(field="parallel.pipeline", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.data", reason=_ONE_LAYOUT),
    FieldLimit(field="parallel.expert", values=("on",), reason=_ONE_LAYOUT),
)
_SPEECH_STAGES = Reason(
    "engine.vllm_omni.speech_stages",
    "the stages of a model of speech share the first card as vLLM-Omni configures them",
)
_SPEECH_LIMITS = (
    FieldLimit(field="memory_fraction", reason=_SPEECH_STAGES),
    FieldLimit(field="parallel.tensor", reason=_SPEECH_STAGES),
)


class VllmOmniEngine(ContainerServingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "vllm_omni"
    engine_profile = PROFILE
    field_limits = _LIMITS
    one_node_because = Reason(
        "engine.vllm_omni.one_node", "vLLM-Omni shares a pipeline among cards of one node"
    )

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        speech = _SPEECH_LIMITS if model is not None and model.kind is ModelKind.SPEECH else ()
        return (*super().limits(task, chip=chip, model=model), *speech)

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        if model.kind is ModelKind.SPEECH:
            return "" if model.architecture in SPEECH_ARCHITECTURES else _unsupported_speech()
        on_ascend = chip is not None and chip.torch_device == "npu"
        if model.kind is ModelKind.VIDEO:
            pipelines = ASCEND_VIDEO_PIPELINES if on_ascend else NVIDIA_VIDEO_PIPELINES
        else:
            pipelines = ASCEND_PIPELINES if on_ascend else NVIDIA_PIPELINES
        if model.architecture in {*pipelines, *filter(None, pipelines.values())}:
            return ""
        return Reason(
            "engine.vllm_omni.pipeline_not_supported",
            "vLLM-Omni serves the pipelines {pipelines} here",
            pipelines=", ".join(sorted(pipelines)),
        )

    def translate(self, settings: ServingSettings) -> ServingCommand:
        """:raises RenderRefused: if a model of speech has more than one card."""
        spec = settings.spec
        is_speech = settings.model is not None and settings.model.kind is ModelKind.SPEECH
        if is_speech and settings.plan.cards > 1:
            raise RenderRefused(
                "engine.vllm_omni.too_many_cards",
                "vLLM-Omni uses one card of a replica for speech, got {cards}: set 1 card and "
                "increase the replicas of the deployment",
                cards=settings.plan.cards,
            )
        # No --shutdown-timeout: its parser has it from vLLM, but its server stops the stages without a time-out.
        argv = ["vllm", "serve", MODEL, "--omni", "--served-model-name", spec["model_name"]]
        argv += ["--host", "0.0.0.0", "--port", "{port:http}"]  # noqa: S104 - inside of its container
        if not is_speech:
            argv += ["--dtype", settings.precision]
            argv += ["--tensor-parallel-size", str(settings.plan.tensor)]
            argv += ["--gpu-memory-utilization", f"{spec['memory_fraction']:g}"]
        elif spec["precision"] != "auto":
            argv += ["--dtype", settings.precision]
        if spec["concurrency"]:
            argv += ["--max-num-seqs", str(spec["concurrency"])]
        if settings.is_set("graphs", "off"):
            argv.append("--enforce-eager")
        return ServingCommand(
            argv=(*argv, *(spec["extra_args"] or ())),
            environment={**ENVIRONMENT, "VLLM_WORKER_MULTIPROC_METHOD": "spawn"},
            key_variables=(KEY_VARIABLE,),
        )


def _unsupported_speech() -> Reason:
    return Reason(
        "engine.vllm_omni.speech_not_supported",
        "of models of speech {architectures} is served",
        architectures=", ".join(sorted(SPEECH_ARCHITECTURES)),
    )
