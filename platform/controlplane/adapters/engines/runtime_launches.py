"""Launches of ``ninefold_runtime``, for the engines that run on it.

They share one environment: training, evaluation, quantization and serving need the same versions of the same
libraries, one lock pins them, and a machine stores them once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.lifecycle import DRAIN_SECONDS, STOP_GRACE
from controlplane.ports.adapter_registry import plugin_of_chip
from controlplane.ports.engines import ROLES, EngineTask, RenderRefused, RenderRequest
from controlplane.ports.launches import EngineEnvironment, Launch, LaunchRole, ReadinessProbe

#: Time to end the current step and write a checkpoint, or to let open requests end.
_GRACE: Mapping[EngineTask, timedelta] = {
    EngineTask.FINETUNE: timedelta(minutes=2),
    EngineTask.EVALUATE: timedelta(seconds=15),
    EngineTask.QUANTIZE: timedelta(seconds=15),
    EngineTask.SCRIPT: timedelta(seconds=30),
    EngineTask.SERVE: STOP_GRACE,
}
#: Builds of torch that the one package of the lock is: on a machine without CUDA it is that for the processor.
_TORCH_BUILDS = frozenset({"cpu", "cuda"})
_START_WITHIN = timedelta(minutes=10)
_ENVIRONMENT: Mapping[str, str] = {
    "NINEFOLD_WORK": "{work}",
    "NINEFOLD_INPUTS": "{inputs}",
    "HF_HOME": "{work}/tmp/huggingface",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def missing_torch_reason(chip: Chip) -> str:
    """Why torch of this environment does not reach the chip; empty if it does."""
    profile = plugin_of_chip(chip).profile()
    needed = profile.torch_plugin
    if not needed and profile.torch_build not in _TORCH_BUILDS:
        needed = f"torch for {profile.torch_build}" if profile.torch_build else ""
    elif not needed:
        return (
            ""
            if chip.torch_device
            else Reason(
                "engine.torch.device_unknown",
                "the PyTorch device type of {chip} is not known",
                chip=chip.label,
            )
        )
    if not needed:
        return Reason(
            "engine.torch.build_unknown",
            "the PyTorch build for {chip} is not known",
            chip=chip.label,
        )
    return Reason(
        "engine.torch.plugin_missing",
        "the software environment of the engine has PyTorch for CPU and CUDA "
        "only; {chip} requires {requirement}",
        chip=chip.label,
        requirement=needed,
    )


def runtime_launch(
    request: RenderRequest, *, spec: Mapping[str, Any], run_within: timedelta | None = None
) -> Launch:
    """The Launch of one process that reads that spec.

    :raises RenderRefused: unless there is exactly one placement; the runtime does not cross nodes.
    """
    if len(request.placements) != 1:
        raise RenderRefused(
            "engine.runtime.multiple_replicas_not_supported",
            "the runtime supports one replica only, got {replicas}",
            replicas=len(request.placements),
        )
    secret = "NINEFOLD_ENGINE_KEY" if request.task is EngineTask.SERVE else "NINEFOLD_ATTEMPT_TOKEN"
    return Launch(
        name=request.name,
        roles=(_runtime_role(request),),
        files={"spec.json": json.dumps(spec, ensure_ascii=False, indent=2) + "\n"},
        inputs=request.inputs,
        engine=runtime_environment(),
        secrets={secret: request.token} if request.token else {},
        run_within=run_within,
        grace=_GRACE[request.task],
        continues=request.continues,
        labels=request.labels,
    )


def _runtime_role(request: RenderRequest) -> LaunchRole:
    (placement,) = request.placements
    argv = ["{python}", "-m", "ninefold_runtime", request.task.value, "--spec", "{work}/spec.json"]
    variables = dict(_ENVIRONMENT)
    variables |= plugin_of_chip(request.chip).environment(request.chip, cards=placement.cards)
    if request.task is not EngineTask.SCRIPT:
        # Otherwise a process that does not find its cards would hold them and work on the processor.
        variables["NINEFOLD_DEVICE"] = request.chip.torch_device
    if request.report_url:
        variables["NINEFOLD_REPORT_URL"] = request.report_url
    serves = request.task is EngineTask.SERVE
    if serves:
        argv += ["--port", "{port:http}"]
        variables["NINEFOLD_DRAIN_SECONDS"] = str(DRAIN_SECONDS)
    return LaunchRole(
        name=ROLES[request.task],
        argv=tuple(argv),
        placements=request.placements,
        environment=variables,
        ports=("http",) if serves else (),
        probe=ReadinessProbe(port="http", path="/health", start_within=_START_WITHIN)
        if serves
        else None,
    )


@cache
def runtime_environment() -> EngineEnvironment:
    """torch by itself, then everything else by the hashed lock."""
    folder = files("controlplane.adapters.engines.transformers")
    lock = folder.joinpath("requirements.lock").read_text(encoding="utf-8")
    wanted = folder.joinpath("requirements.in").read_text(encoding="utf-8").split()
    torch = next(word for word in wanted if word.startswith("torch=="))
    digest = hashlib.sha256(f"{torch}\n{lock}".encode()).hexdigest()
    return EngineEnvironment(name=f"transformers-{digest[:8]}", preinstall=(torch,), lock=lock)
