"""LoRA adapters of a deployment: their configuration, validation, and the names that are taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from apps.models import selectors as registry_selectors
from apps.models.models import ModelVersion
from apps.models.selectors import ArtifactFileMissing
from apps.serving.models import AdapterRoute, Deployment, Revision, RevisionAdapter, Route
from controlplane.domain.common.reasons import UNKNOWN, Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.registry.lora_configs import LoraConfigFacts
from controlplane.domain.registry.versions import GateDecision, ModelState
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import ArtifactError
from controlplane.ports.engines import Engine, EngineTask

#: Adapters of one deployment: each takes memory beside the weights on every card.
MAX_ADAPTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfiguration:
    """A LoRA adapter that a revision serves."""

    #: Model name at the gateway.
    name: str
    #: The version that its fine-tuning created.
    model_version: ModelVersion

    @classmethod
    def of(cls, adapter: RevisionAdapter) -> AdapterConfiguration:
        """That of an existing revision."""
        return cls(name=adapter.name, model_version=adapter.model_version)


def revision_adapters(revision: Revision) -> QuerySet[RevisionAdapter]:
    return revision.adapters.select_related("model_version__line", "model_version__artifact")


def adapters_unsupported_reason(engine: Engine, *, base: ModelVersion | None) -> str:
    """Why the engine serves no LoRA adapters of the base model; empty if it does."""
    profile = engine.profile()
    if profile.lora is None:
        return Reason(
            "deployment.adapters.engine_not_supported",
            "{engine} does not serve LoRA adapters; engines that do are {engines}",
            engine=profile.title,
            engines=", ".join(_engines_with_adapters()),
        )
    kind = registry_selectors.engine_model_facts(base).kind if base is not None else None
    if base is not None and kind not in profile.lora.kinds:
        return Reason(
            "deployment.adapters.kind_not_supported",
            "{engine} serves LoRA adapters of models of the kinds {kinds}; {model} is of the kind {kind}",
            engine=profile.title,
            kinds=", ".join(sorted(profile.lora.kinds)),
            model=str(base),
            kind=kind or UNKNOWN,
        )
    return ""


def _engines_with_adapters() -> Iterator[str]:
    for name in adapter_registry.engine_names():
        engine = adapter_registry.engine_by_name(name)
        if EngineTask.SERVE in engine.tasks and engine.profile().lora is not None:
            yield engine.name


def check_adapters(
    adapters: Sequence[AdapterConfiguration], *, base: ModelVersion, engine: Engine
) -> Iterator[FieldFinding]:
    """Everything wrong with the adapters of a revision that serves the base model with the engine."""
    if not adapters:
        return
    for message in _adapter_errors(adapters, base=base, engine=engine):
        yield FieldFinding(field="adapters", message=message)


def _adapter_errors(
    adapters: Sequence[AdapterConfiguration], *, base: ModelVersion, engine: Engine
) -> Iterator[str]:
    if reason := adapters_unsupported_reason(engine, base=base):
        yield reason
        return
    if len(adapters) > MAX_ADAPTERS:
        yield Reason(
            "deployment.adapters.too_many",
            "a deployment serves at most {limit} LoRA adapters, got {count}",
            limit=MAX_ADAPTERS,
            count=len(adapters),
        )
    for name, count in Counter(adapter.name for adapter in adapters).items():
        if count > 1:
            yield Reason(
                "deployment.adapters.duplicate_name",
                "{count} LoRA adapters have the name {name}; give each a name of its own",
                count=count,
                name=repr(name),
            )
    for version in dict.fromkeys(adapter.model_version for adapter in adapters):
        yield from _version_errors(version, base=base, engine=engine)


def _version_errors(version: ModelVersion, *, base: ModelVersion, engine: Engine) -> Iterator[str]:
    if version.state != ModelState.READY:
        yield Reason(
            "model_version.state.not_ready",
            "{version} is {state}, not ready",
            version=str(version),
            state=version.state,
        )
        return
    if version.acceptance == GateDecision.REJECTED:
        yield Reason(
            "model_version.acceptance.missing",
            "{version} is not accepted ({reason}); accept it, or choose another version",
            version=str(version),
            reason=version.acceptance_reason,
        )
    try:
        facts = registry_selectors.lora_config_facts(version)
    except (ArtifactFileMissing, ArtifactError, ValueError) as error:
        yield Reason(
            "deployment.adapter.unreadable",
            "the LoRA adapter of {version} cannot be read: {reason}",
            version=str(version),
            reason=str(error),
        )
        return
    if facts is None:
        yield Reason(
            "deployment.adapter.missing",
            "{version} has no LoRA adapter, only merged or fully trained weights; choose a version that "
            "was fine-tuned with LoRA from {base}, or deploy {version} by itself",
            version=str(version),
            base=str(base),
        )
        return
    if version.base_id != base.pk:
        yield Reason(
            "deployment.adapter.wrong_base",
            "the LoRA adapter of {version} was trained from {trained}, and the deployment serves {base}; "
            "deploy {trained}, or choose an adapter of {base}",
            version=str(version),
            trained=str(version.base) if version.base is not None else UNKNOWN,
            base=str(base),
        )
    yield from _support_errors(version, facts, engine=engine)


def _support_errors(
    version: ModelVersion, facts: LoraConfigFacts, *, engine: Engine
) -> Iterator[str]:
    profile = engine.profile()
    if profile.lora is None:
        return
    if profile.lora.max_rank is not None and facts.rank > profile.lora.max_rank:
        yield Reason(
            "deployment.adapter.rank_too_high",
            "the LoRA adapter of {version} has rank {rank}; {engine} supports at most {limit}",
            version=str(version),
            rank=facts.rank,
            engine=profile.title,
            limit=profile.lora.max_rank,
        )
    if unsupported := facts.variants - profile.lora.variants:
        yield Reason(
            "deployment.adapter.variant_not_supported",
            "the LoRA adapter of {version} uses {variants}, which {engine} does not support",
            version=str(version),
            variants=", ".join(sorted(unsupported)),
            engine=profile.title,
        )


def taken_route_names(
    names: Collection[str], *, deployment: Deployment | None = None
) -> frozenset[str]:
    """Those of the names that a route, or an adapter of another deployment, has."""
    adapters = AdapterRoute.objects.filter(name__in=names)
    if deployment is not None:
        adapters = adapters.exclude(deployment=deployment)
    routes = Route.objects.filter(name__in=names)
    return frozenset(
        [*adapters.values_list("name", flat=True), *routes.values_list("name", flat=True)]
    )
