"""Base class of engines that serve from their own image.

A subclass declares which fields it cannot honour (``limits``) and which quantized weights it does not load
(``unsupported_weights``), and translates one checked spec into a command (``translate``). Choosing the image,
the parallel plan, the chip's variables, the port, the probe and the key are the same for all of them.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from packaging.version import Version

from controlplane.adapters.engines import container_commands, container_engine, tool_parsers
from controlplane.adapters.engines.container_engine import ContainerEngine, resolve_precision
from controlplane.domain.common import spec_fields
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import NONE, UNKNOWN, Reason
from controlplane.domain.common.spec_fields import FieldFinding, SpecField, field_finding
from controlplane.domain.jobs.parallelism import ParallelPlan, node_and_card_counts
from controlplane.domain.serving.lifecycle import STOP_GRACE
from controlplane.domain.serving.model_kinds import ModelKind, Operation
from controlplane.domain.serving.parallelism import (
    architecture_from_config,
    check_replica_parallelism,
    replica_parallelism,
)
from controlplane.domain.specs.serving import SERVE
from controlplane.ports.engines import (
    ROLES,
    EngineTask,
    ModelFacts,
    RenderRefused,
    RenderRequest,
    ServedAdapter,
)
from controlplane.ports.launches import Launch, LaunchRole, ReadinessProbe

#: The secret by which the gateway authenticates to the replica.
KEY = "NINEFOLD_ENGINE_KEY"
MODEL = "{inputs}/model"
#: Weights of hundreds of gigabytes are read, and graphs recorded, before the first success.
_START_WITHIN = timedelta(minutes=40)
#: Names scripts of an image that set up its libraries.
_SET_ENV = "NINEFOLD_SET_ENV"
#: Names go into arguments, and callers send them in JSON.
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}")
#: Characters of an option of one letter, with its dash.
_SHORT_OPTION = 2
#: Arguments of any engine that a spec must not override.
RESERVED_ARGUMENTS = frozenset(
    {
        "--api-key",
        "--host",
        "--port",
        "--uds",
        "--model",
        "--model-id",
        "--model-path",
        "--hostname",
        "--prometheus-port",
        "--served-model-name",
        "--enable-lora",
        "--lora-modules",
        "--lora-paths",
        "--tokenizer",
        "--trust-remote-code",
        "--tensor-parallel-size",
        "-tp",
        "--tp-size",
        "--tp",
        "--pipeline-parallel-size",
        "-pp",
        "--pp-size",
        "--data-parallel-size",
        "-dp",
        "--dp-size",
        "--nnodes",
        "--node-rank",
        "--master-addr",
        "--master-port",
        "--dist-init-addr",
        "--config",
    }
)

_ENVIRONMENT: Mapping[str, str] = {**container_engine.OFFLINE_ENVIRONMENT, "DO_NOT_TRACK": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """A spec with nothing left open."""

    spec: Mapping[str, Any]
    chip: Chip
    plan: ParallelPlan
    #: Nodes that one replica spans.
    nodes: int
    model: ModelFacts | None
    #: ``bfloat16``, ``float16`` or ``float32``.
    precision: str
    #: Where the processes of several nodes meet.
    master_port: int
    #: The version of the engine in the image.
    version: str
    adapters: tuple[ServedAdapter, ...] = ()

    def is_set(self, name: str, value: str = "on") -> bool:
        """Whether the flag of that name is present."""
        return bool(self.spec[name] == value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCommand:
    """An engine's command for a serving spec."""

    argv: tuple[str, ...]
    #: Text files by path relative to ``{work}``.
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Ports beside ``http``.
    ports: tuple[str, ...] = ()
    health: str = "/health"
    #: The port that answers at ``health``.
    health_port: str = "http"
    #: Variables that bear the key beside ``NINEFOLD_ENGINE_KEY``.
    key_variables: tuple[str, ...] = ()


def adapter_paths(adapters: Sequence[ServedAdapter]) -> list[str]:
    """``NAME=FOLDER`` of each adapter, as the parsers of vLLM and SGLang read it."""
    return [f"{adapter.name}={{inputs}}/{adapter.input}" for adapter in adapters]


class ContainerServingEngine(ContainerEngine):
    """Implements ``controlplane.ports.engines.Engine`` but for ``name``, ``profile`` and the translation."""

    tasks = frozenset({EngineTask.SERVE})
    #: Whether a replica may span nodes; otherwise the reason why not.
    one_node_because: str = ""
    #: Arguments that a spec must not override, beside those of any engine.
    reserved_arguments: frozenset[str] = frozenset()
    #: Its key in ``tool_parsers.MIN_VERSIONS``; empty if it has no parsers of tool calls.
    parsers: str = ""
    #: Operation → parameter of requests that earlier releases ignore → the first that reads it (``min_version``).
    parameter_min_versions: Mapping[Operation, Mapping[str, str]] = {}
    #: Architecture → the last release that serves it (``max_version``), where later ones do not.
    architecture_max_versions: Mapping[str, str] = {}

    @abstractmethod
    def translate(self, settings: ServingSettings) -> ServingCommand:
        """The command of a checked spec."""

    def unsupported_weights_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        """Why it does not load weights of that format and scheme on the chip; empty if it does."""
        return ""

    def unsupported_model_reason(self, model: ModelFacts, *, chip: Chip | None) -> str:
        """Why it does not serve a model of a kind that it serves otherwise; empty if it does."""
        return ""

    def check_engine_rules(self, spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
        """What else is wrong with a complete spec for this engine alone."""
        yield from ()

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        return SERVE

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        return {}

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        return spec_fields.with_defaults(SERVE, spec)

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        found = [
            *spec_fields.check_fields(SERVE, spec),
            *spec_fields.check_limits(SERVE, spec, self.limits(task, chip=chip, model=model)),
            *self.check_version(spec, chip=chip),
        ]
        if model is not None:
            found += self._check_model(model, chip=chip)
        # A value of the wrong type has been reported already, and cannot be compared.
        if not found:
            found += self._check_values(task, spec, chip=chip, model=model)
        return tuple(found)

    def ignored_parameters(
        self, spec: Mapping[str, Any], *, chip: Chip
    ) -> Mapping[Operation, Mapping[str, str]]:
        """Implements ``controlplane.ports.engines.VersionedEngine``."""
        found: dict[Operation, Mapping[str, str]] = {}
        for operation, parameters in self.parameter_min_versions.items():
            release = Version(self.version(chip, spec))
            ignored = {
                name: first for name, first in parameters.items() if release < Version(first)
            }
            if ignored:
                found[operation] = ignored
        return found

    def check_nodes(
        self, spec: Mapping[str, Any], *, nodes: int, model: ModelFacts | None
    ) -> tuple[FieldFinding, ...]:
        """Implements ``controlplane.ports.engines.MultiNodeEngine``."""
        reason = self.one_node_because
        if not reason and model is not None and model.kind not in (None, ModelKind.TEXT):
            reason = Reason(
                "engine.replica.kind_on_one_node",
                "only models that generate text are served across nodes, and {model} is of the kind {kind}",
                model=model.name,
                kind=model.kind or UNKNOWN,
            )
        if not reason:
            return ()
        return (
            field_finding(
                "cards",
                "engine.replica.multi_node_not_supported",
                "a replica of {engine} must run on one node, got {nodes}: {reason}",
                engine=self.profile().title,
                nodes=nodes,
                reason=reason,
            ),
        )

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one replica; each of its placements is a node.

        :raises RenderRefused: if it spans nodes and the engine cannot, if nodes give different numbers of cards,
            or if the plan does not multiply out to the cards.
        """
        spec, nodes = self.normalise(request.task, request.spec), len(request.placements)
        if nodes > 1 and (wrong := self.check_nodes(spec, nodes=nodes, model=request.model)):
            raise RenderRefused(wrong[0].message)
        cards = container_commands.processes_per_replica(request.placements) * nodes
        settings = ServingSettings(
            spec=spec,
            chip=request.chip,
            plan=replica_parallelism(spec["parallel"], cards=cards, nodes=nodes),
            nodes=nodes,
            model=request.model,
            precision=resolve_precision(spec, chip=request.chip),
            master_port=container_commands.master_port(request.name),
            version=self.version(request.chip, spec),
            adapters=request.adapters,
        )
        translation = self.translate(settings)
        role, files = _serving_role(request, translation)
        names = (KEY, *translation.key_variables)
        return Launch(
            name=request.name,
            roles=(role,),
            files=files,
            inputs=request.inputs,
            image=self.image(request.chip, spec),
            secrets=dict.fromkeys(names, request.token) if request.token else {},
            grace=STOP_GRACE,
            continues=request.continues,
            labels=request.labels,
        )

    def _check_model(self, model: ModelFacts, *, chip: Chip | None) -> Iterator[FieldFinding]:
        profile = self.profile()
        if model.format and model.format not in profile.formats:
            loads = ", ".join(sorted(profile.formats)) or NONE
            yield field_finding(
                "model",
                "engine.model.format_not_supported",
                "{model} is quantized ({scheme}) in the format {format}, which {engine} "
                "does not support; it supports {formats}",
                model=model.name,
                scheme=model.scheme or UNKNOWN,
                format=model.format,
                engine=profile.title,
                formats=loads,
            )
        elif model.format and (reason := self.unsupported_weights_reason(model, chip=chip)):
            yield field_finding(
                "model",
                "engine.model.quantization_not_supported",
                "{model} is quantized as {scheme} in {format}: {reason}",
                model=model.name,
                scheme=model.scheme,
                format=model.format,
                reason=reason,
            )
        if model.architecture and model.kind not in profile.operations:
            yield field_finding(
                "model",
                "engine.model.kind_not_supported",
                "{model} is a {architecture} ({kind}); {engine} serves models of the kinds {kinds}",
                model=model.name,
                architecture=model.architecture,
                kind=model.kind or UNKNOWN,
                engine=profile.title,
                kinds=", ".join(sorted(profile.operations)),
            )
        elif model.architecture and (reason := self.unsupported_model_reason(model, chip=chip)):
            yield field_finding(
                "model",
                "engine.model.architecture_not_supported",
                "{model} is a {architecture}, which is not supported: {reason}",
                model=model.name,
                architecture=model.architecture,
                reason=reason,
            )

    def _check_release(
        self, spec: Mapping[str, Any], *, chip: Chip | None, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        """That the version of the image no longer serves the model, if so."""
        last = self.architecture_max_versions.get(model.architecture, "") if model else ""
        version = self.version(chip, spec)
        if model is not None and last and Version(version).release > Version(last).release:
            yield field_finding(
                "engine_version",
                "engine.model.architecture_removed",
                "{engine} {version} does not serve {architecture}; the last version that does is {last}",
                engine=self.profile().title,
                version=version,
                architecture=model.architecture,
                last=last,
            )

    def _check_values(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> Iterator[FieldFinding]:
        complete = self.normalise(task, spec)
        name, length = complete["model_name"], complete["context_length"]
        if not _MODEL_NAME.fullmatch(name):
            yield field_finding(
                "model_name",
                "engine.model_name.invalid",
                "model_name must be letters, digits and . _ : / - and begin with a "
                "letter or digit, got {name}",
                name=repr(name),
            )
        if model is not None and length is not None and 0 < model.context_length < length:
            yield field_finding(
                "context_length",
                "engine.context_length.too_long",
                "context_length must be ≤ {limit}, the context length of {model}, got {value}",
                limit=model.context_length,
                model=model.name,
                value=length,
            )
        yield from _check_extra_arguments(
            complete, reserved=RESERVED_ARGUMENTS | self.reserved_arguments
        )
        yield from self._check_release(complete, chip=chip, model=model)
        yield from self.check_engine_rules(complete)
        if self.parsers and (model is None or model.kind is ModelKind.TEXT):
            yield from tool_parsers.parser_findings(
                complete,
                model=model,
                engine=self.parsers,
                version=self.version(chip, complete),
                title=self.profile().title,
            )
        group = complete["parallel"]
        if group["tensor"]:
            cards = group["tensor"] * group["pipeline"] * group["data"]
            found = check_replica_parallelism(
                group,
                cards=cards,
                architecture=architecture_from_config(model.config if model else {}),
                chip=chip,
                nodes=node_and_card_counts([chip], cards)[0] if chip is not None else 1,
            )
            # The number of cards is unknown here; the deployment that requests them checks it.
            yield from (each for each in found if each.field != "cards")


def _check_extra_arguments(
    spec: Mapping[str, Any], *, reserved: frozenset[str]
) -> Iterator[FieldFinding]:
    """Arguments that would change the address, the key or the model of the server are refused."""
    for argument in spec["extra_args"] or ():
        given = argument.partition("=")[0]
        name = given.lower().replace("_", "-")
        # Parsers of engines accept the beginning of a name for the whole, and gflags one dash for two.
        if name.startswith("-") and any(
            each.startswith((name, f"-{name}") if len(name) > _SHORT_OPTION else name)
            for each in reserved
        ):
            yield field_finding(
                "extra_args",
                "engine.extra_args.reserved",
                "{argument} cannot be set here: Ninefold sets the address, key, "
                "model, adapters, replica size and model code",
                argument=given,
            )


def _serving_role(
    request: RenderRequest, translation: ServingCommand
) -> tuple[LaunchRole, dict[str, str]]:
    """The role and the files that start it.

    Where an image's libraries have to be set up first, or nodes give different cards, the command is a step of
    ``programs/run_steps.py``.
    """
    shared, differing = container_commands.chip_variables(request.chip, request.placements)
    several = len(request.placements) > 1
    names = (
        container_commands.rendezvous_variables(request.placements, launch=request.name)
        if several
        else {}
    )
    argv, files = translation.argv, dict(translation.files)
    if _SET_ENV in shared or any(differing):
        # Files are the same for all processes of a Launch; index and ports are filled in arguments only.
        step, rest = (container_commands.ALL_ARGUMENTS, argv) if several else (argv, ())
        files |= container_commands.render_step_files(
            [container_commands.CommandStep(argv=step)], replicas=differing
        )
        argv = (*container_commands.RUN_STEPS_COMMAND, *rest)
    role = LaunchRole(
        name=ROLES[request.task],
        argv=argv,
        placements=request.placements,
        environment={**_ENVIRONMENT, **translation.environment, **shared, **names},
        ports=("http", *translation.ports),
        probe=ReadinessProbe(
            port=translation.health_port, path=translation.health, start_within=_START_WITHIN
        ),
    )
    return role, files
