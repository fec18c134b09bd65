"""Rendering specs into Launches for the ``transformers`` engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.adapters.engines.transformers import specs
from controlplane.domain import fields
from controlplane.domain.accelerators import Chip
from controlplane.domain.fields import Field, Finding, Limit
from controlplane.domain.specs import training
from controlplane.ports.engines import (
    ROLES,
    EngineProfile,
    FlagsChecked,
    ModelFacts,
    RenderRequest,
    Task,
)
from controlplane.ports.launches import EngineEnvironment, Launch, Placement, Probe, Role
from controlplane.ports.registry import chip_plugin

#: Time to end the current step and write a checkpoint, or to let open requests end.
_GRACE: Mapping[Task, timedelta] = {
    Task.FINETUNE: timedelta(minutes=2),
    Task.EVALUATE: timedelta(seconds=15),
    Task.SCRIPT: timedelta(seconds=30),
    Task.SERVE: timedelta(seconds=30),
}
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


class TransformersEngine:
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "transformers"
    tasks = frozenset(specs.FIELDS)

    def profile(self) -> EngineProfile:
        return EngineProfile(title="Transformers", flags=FlagsChecked.RUN)

    def runs_on(self, task: Task, chip: Chip) -> str:
        """It goes wherever torch has a device."""
        return "" if chip.torch_device else f"nobody says how torch names {chip.label}"

    def environment(self) -> EngineEnvironment:
        """torch by itself, then everything else by the hashed lock."""
        return _environment()

    def fields(self, task: Task) -> tuple[Field, ...]:
        """What can be set, with labels, limits and defaults, for forms and API descriptions."""
        return specs.FIELDS[task]

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[Limit, ...]:
        return specs.LIMITS.get(task, ())

    def recommended(self, task: Task, *, model: ModelFacts | None) -> Mapping[str, Any]:
        """Values that suit the model better than the defaults."""
        if task is not Task.FINETUNE or model is None:
            return {}
        return training.recommended(parameters=model.parameters)

    def check(
        self,
        task: Task,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[Finding, ...]:
        """Everything wrong with the spec; empty means that it can be rendered."""
        table = specs.FIELDS[task]
        limits = self.limits(task, chip=chip, model=model)
        wrong = (*fields.check(table, spec), *fields.check_limits(table, spec, limits))
        if model is None or task is Task.SCRIPT:
            return wrong
        return (*wrong, *_check_model(task, spec, model=model))

    def normalise(self, task: Task, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec with every default written out. LoRA has a default learning rate of its own."""
        complete = fields.with_defaults(specs.FIELDS[task], spec)
        if task is Task.FINETUNE and "learning_rate" not in spec:
            complete["learning_rate"] = training.default_rate(
                objective=complete["objective"], method=complete["method"]
            )
        return complete

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one process.

        :raises ValueError: unless there is exactly one placement; this engine does not cross nodes.
        """
        if len(request.placements) != 1:
            raise ValueError(
                f"the transformers engine runs one replica, not {len(request.placements)}"
            )
        spec = self.normalise(request.task, request.spec)
        serves = request.task is Task.SERVE
        secret = "NINEFOLD_ENGINE_KEY" if serves else "NINEFOLD_ATTEMPT_TOKEN"
        return Launch(
            name=request.name,
            roles=(_role(request, placement=request.placements[0]),),
            files={
                "spec.json": json.dumps(specs.runtime_spec(spec), ensure_ascii=False, indent=2)
                + "\n"
            },
            inputs=request.inputs,
            engine=self.environment(),
            secrets={secret: request.token} if request.token else {},
            run_within=timedelta(seconds=spec["maximum_run_time_seconds"])
            if request.task is Task.SCRIPT
            else None,
            grace=_GRACE[request.task],
            continues=request.continues,
            labels=request.labels,
        )


def _role(request: RenderRequest, *, placement: Placement) -> Role:
    argv = ["{python}", "-m", "ninefold_runtime", request.task.value, "--spec", "{work}/spec.json"]
    environment = dict(_ENVIRONMENT)
    environment |= chip_plugin(request.chip).environment(request.chip, cards=placement.cards)
    if request.report_url:
        environment["NINEFOLD_REPORT_URL"] = request.report_url
    serves = request.task is Task.SERVE
    if serves:
        argv += ["--port", "{port:http}"]
    return Role(
        name=ROLES[request.task],
        argv=tuple(argv),
        placements=(placement,),
        environment=environment,
        ports=("http",) if serves else (),
        probe=Probe(port="http", path="/health", start_within=_START_WITHIN) if serves else None,
    )


def _check_model(task: Task, spec: Mapping[str, Any], *, model: ModelFacts) -> Iterator[Finding]:
    if task is Task.FINETUNE and model.architecture not in specs.TRAINABLE:
        yield Finding(
            field="model",
            message=(
                f"{model.name} is a {model.architecture or 'model of unknown architecture'}, "
                "which this engine cannot train; "
                f"it trains {', '.join(sorted(specs.TRAINABLE))}"
            ),
        )
    elif not model.architecture.endswith("ForCausalLM"):
        yield Finding(
            field="model",
            message=(
                f"{model.name} is a {model.architecture or 'model of unknown architecture'}; "
                "this engine runs causal language models (…ForCausalLM)"
            ),
        )
    name = {Task.FINETUNE: "max_length", Task.EVALUATE: "max_new_tokens"}.get(task, "")
    length = spec.get(name)
    if (
        isinstance(length, int)
        and not isinstance(length, bool)
        and 0 < model.context_length < length
    ):
        yield Finding(
            field=name,
            message=(
                f"{name} must be ≤ {model.context_length}, the context of {model.name}, got {length}"
            ),
        )


@cache
def _environment() -> EngineEnvironment:
    folder = files("controlplane.adapters.engines.transformers")
    lock = folder.joinpath("requirements.lock").read_text(encoding="utf-8")
    wanted = folder.joinpath("requirements.in").read_text(encoding="utf-8").split()
    torch = next(word for word in wanted if word.startswith("torch=="))
    digest = hashlib.sha256(f"{torch}\n{lock}".encode()).hexdigest()
    return EngineEnvironment(name=f"transformers-{digest[:8]}", preinstall=(torch,), lock=lock)
