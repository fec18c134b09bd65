"""Configurations of revisions: the choice of an engine, validation, and the memory of a replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.fleet import selectors as fleet
from apps.models import selectors as registry_selectors
from apps.models.models import ModelVersion
from apps.models.selectors import catalog, sizing
from apps.quotas import selectors as quotas
from apps.serving.models import Revision
from apps.serving.selectors.lora_adapters import (
    AdapterConfiguration,
    check_adapters,
    revision_adapters,
)
from controlplane.domain.catalog import CatalogTask, SupportLevel
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.reasons import NONE, Reason
from controlplane.domain.common.resources import Bytes, format_bytes
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, field_finding
from controlplane.domain.jobs.parallelism import check_cards_on_nodes, node_and_card_counts
from controlplane.domain.quotas.claims import MOST_CARDS
from controlplane.domain.registry.versions import GateDecision, ModelState
from controlplane.domain.serving.parallelism import (
    architecture_from_config,
    check_replica_parallelism,
    replica_parallelism,
)
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import ArtifactError
from controlplane.ports.engines import (
    ArgumentVerification,
    Engine,
    EngineTask,
    ModelFacts,
    MultiNodeEngine,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An installed engine that serves."""

    name: str
    title: str
    #: To what extent its flags are verified.
    flags: ArgumentVerification
    #: Why it cannot serve on the chip; empty if it can.
    unavailable_reason: str


def engine_choices(
    *, chip: Chip, model: ModelFacts | None, nodes: int = 1
) -> tuple[EngineChoice, ...]:
    """Every engine that serves: the best for the chip first, those that cannot serve there last.

    :param nodes: nodes of one replica.
    """
    engines = [adapter_registry.engine_by_name(name) for name in adapter_registry.engine_names()]
    choices = [
        (engine, engine_refusal(engine, chip=chip, model=model, nodes=nodes))
        for engine in engines
        if EngineTask.SERVE in engine.tasks
    ]
    choices.sort(
        key=lambda choice: (bool(choice[1]), *_engine_sort_key(choice[0], chip=chip, model=model))
    )
    return tuple(
        EngineChoice(
            name=engine.name,
            title=engine.profile().title,
            flags=engine.profile().flags,
            unavailable_reason=unavailable_reason,
        )
        for engine, unavailable_reason in choices
    )


def best_engine(*, chip: Chip, model: ModelFacts | None, nodes: int = 1) -> str:
    """The name of the default engine for the model on so many nodes with the chip."""
    return engine_choices(chip=chip, model=model, nodes=nodes)[0].name


def engine_refusal(engine: Engine, *, chip: Chip, model: ModelFacts | None, nodes: int = 1) -> str:
    """Why it does not serve the model on so many nodes with the chip; empty if it does."""
    reason = engine.unsupported_reason(EngineTask.SERVE, chip)
    if reason:
        return reason
    if nodes > 1 and (found := _check_nodes(engine, {}, nodes=nodes, model=model)):
        return found[0].message
    if engine.environment() is None and (clusters := fleet.clusters_without_images(chip.name)):
        names = ", ".join(clusters)
        return Reason(
            "engine.containers.not_supported",
            "{engine} requires a container image, and the clusters with {chip} do "
            "not run containers ({clusters})",
            engine=engine.profile().title,
            chip=chip.label,
            clusters=names,
        )
    if model is None:
        return ""
    wrong = engine.check(EngineTask.SERVE, {}, chip=chip, model=model)
    return next((finding.message for finding in wrong if finding.field == "model"), "")


def _check_nodes(
    engine: Engine, spec: Mapping[str, Any], *, nodes: int, model: ModelFacts | None
) -> tuple[FieldFinding, ...]:
    """Why a replica cannot span the nodes, two or more; empty if it can."""
    if isinstance(engine, MultiNodeEngine):
        return engine.check_nodes(spec, nodes=nodes, model=model)
    message = Reason(
        "deployment.engine.one_node",
        "a replica of {engine} must run on one node, got {nodes}",
        engine=engine.profile().title,
        nodes=nodes,
    )
    return (FieldFinding(field="cards", message=message),)


def engine_field_limits(
    name: str, *, chip: Chip, model: ModelFacts | None
) -> tuple[FieldLimit, ...]:
    """Choices of its fields that are unavailable on the chip or for the model."""
    return adapter_registry.engine_by_name(name).limits(EngineTask.SERVE, chip=chip, model=model)


def _engine_sort_key(
    engine: Engine, *, chip: Chip, model: ModelFacts | None
) -> Sequence[int | str]:
    """Sort key: support of the model in the catalog, most supported models, metrics, verified flags, name."""
    profile = engine.profile()
    supported = catalog.supported_model_counts(task=CatalogTask.SERVE, vendor=chip.vendor)
    unchecked = profile.flags is ArgumentVerification.UNVERIFIED
    return (
        int(not _is_supported_in_catalog(engine, chip=chip, model=model)),
        -supported.get(engine.name, 0),
        int(not profile.metrics),
        int(unchecked),
        engine.name,
    )


def _is_supported_in_catalog(engine: Engine, *, chip: Chip, model: ModelFacts | None) -> bool:
    entries = catalog.published_catalog().entries
    entry = entries.get(model.catalog_key) if model is not None else None
    if entry is None:
        return False
    cells = entry.claims(CatalogTask.SERVE, vendor=chip.vendor, engines=frozenset({engine.name}))
    return any(cell.status is SupportLevel.SUPPORTED for cell in cells)


MAX_REPLICAS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionConfiguration:
    """The model, engine, spec, chips and cards of one revision."""

    model_version: ModelVersion
    #: Empty: the best engine that is installed for the first chip.
    engine: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    chips: tuple[str, ...] = ("cpu",)
    #: Cards of one replica; more than a node has are those of several whole nodes.
    cards: int = 1
    #: LoRA adapters that are served beside the model.
    adapters: tuple[AdapterConfiguration, ...] = ()

    @classmethod
    def of(cls, revision: Revision) -> RevisionConfiguration:
        """The configuration of an existing revision."""
        return cls(
            model_version=revision.model_version,
            engine=revision.engine,
            spec=revision.spec,
            chips=tuple(revision.chips),
            cards=revision.cards,
            adapters=tuple(map(AdapterConfiguration.of, revision_adapters(revision))),
        )

    def with_engine(self) -> RevisionConfiguration:
        """The same configuration with an engine, if its first chip is known."""
        chip = adapter_registry.all_chips().get(self.chips[0]) if self.chips else None
        if self.engine or chip is None:
            return self
        facts = registry_selectors.engine_model_facts(self.model_version)
        return replace(self, engine=best_engine(chip=chip, model=facts, nodes=self.nodes))

    @property
    def nodes(self) -> int:
        """Nodes of one replica."""
        return replica_node_counts(self.chips, self.cards)[0]


def replica_node_counts(chips: Sequence[str], cards: int) -> tuple[int, int]:
    """The number of nodes of a replica with so many cards of one of the chips, and the cards of each."""
    known = adapter_registry.all_chips()
    return node_and_card_counts([known[name] for name in chips if name in known], cards)


def changed_configuration(revision: Revision, changes: Mapping[str, Any]) -> RevisionConfiguration:
    """The configuration of the revision with some fields replaced.

    With other chips the engine is chosen again, unless the changes name one.
    """
    current = RevisionConfiguration.of(revision)
    engine = current.engine if changes.get("chips", current.chips) == current.chips else ""
    return replace(current, **{"engine": engine, **changes})


def revision_configuration_check(
    configuration: RevisionConfiguration, *, replicas: int
) -> tuple[FieldFinding, ...]:
    """Everything invalid in the configuration; empty means that it can be deployed."""
    resolved = configuration.with_engine()
    findings = [*_check_model_and_replicas(resolved, replicas=replicas), *_check_chips(resolved)]
    if any(finding.field == "chips" for finding in findings):
        return tuple(findings)
    findings += _check_engine(resolved)
    if not any(finding.field == "engine" for finding in findings):
        findings += _check_spec(resolved)
        findings += check_adapters(
            resolved.adapters,
            base=resolved.model_version,
            engine=adapter_registry.engine_by_name(resolved.engine),
        )
    # Several chips may yield the same finding.
    return tuple(dict.fromkeys(findings))


def _check_model_and_replicas(
    configuration: RevisionConfiguration, *, replicas: int
) -> Iterator[FieldFinding]:
    version = configuration.model_version
    if version.state != ModelState.READY:
        yield field_finding(
            "model_version",
            "model_version.state.not_ready",
            "{version} is {state}, not ready",
            version=str(version),
            state=version.state,
        )
    if version.acceptance == GateDecision.REJECTED:
        message = Reason(
            "model_version.acceptance.missing",
            "{version} is not accepted ({reason}); accept it, or choose another version",
            version=str(version),
            reason=version.acceptance_reason,
        )
        yield FieldFinding(field="model_version", message=message)
    if not 1 <= replicas <= MAX_REPLICAS:
        yield field_finding(
            "replicas",
            "spec.value.out_of_range",
            "the value must be 1 to {limit}, got {value}",
            limit=MAX_REPLICAS,
            value=replicas,
        )
    if not 1 <= configuration.cards <= MOST_CARDS:
        yield field_finding(
            "cards",
            "spec.value.out_of_range",
            "the value must be 1 to {limit}, got {value}",
            limit=MOST_CARDS,
            value=configuration.cards,
        )


def _check_chips(configuration: RevisionConfiguration) -> Iterator[FieldFinding]:
    known = adapter_registry.all_chips()
    unknown = [chip for chip in configuration.chips if chip not in known]
    if unknown or not configuration.chips:
        given = ", ".join(unknown) or NONE
        yield field_finding(
            "chips",
            "spec.chips.unknown",
            "unknown chip {chip}; use {chips}",
            chip=given,
            chips=", ".join(known),
        )
        return
    yield from check_cards_on_nodes(_configured_chips(configuration), configuration.cards)


def _check_engine(configuration: RevisionConfiguration) -> Iterator[FieldFinding]:
    name, names = configuration.engine, adapter_registry.engine_names()
    serving = [
        each for each in names if EngineTask.SERVE in adapter_registry.engine_by_name(each).tasks
    ]
    if name not in names:
        message = Reason(
            "deployment.engine.not_found",
            "engine {engine} does not exist; engines for serving are {engines}",
            engine=repr(name),
            engines=", ".join(serving),
        )
        yield FieldFinding(field="engine", message=message)
    elif name not in serving:
        message = Reason(
            "deployment.engine.serving_not_supported",
            "{engine} does not support serving; engines for serving are {engines}",
            engine=name,
            engines=", ".join(serving),
        )
        yield FieldFinding(field="engine", message=message)
    else:
        yield from _check_engine_chips(
            configuration, adapter_registry.engine_by_name(name), serving=serving
        )


def _check_engine_chips(
    configuration: RevisionConfiguration, engine: Engine, *, serving: list[str]
) -> Iterator[FieldFinding]:
    nodes = configuration.nodes
    for chip in _configured_chips(configuration):
        if not (reason := engine_refusal(engine, chip=chip, model=None, nodes=nodes)):
            continue
        others = [
            each
            for each in serving
            if not engine_refusal(
                adapter_registry.engine_by_name(each), chip=chip, model=None, nodes=nodes
            )
        ]
        if others:
            message = Reason(
                "deployment.engine.chip_not_supported_use",
                "{engine} does not serve on {chip}: {reason}; use {engines}",
                engine=engine.name,
                chip=chip.name,
                reason=reason,
                engines=", ".join(others),
            )
        else:
            message = Reason(
                "deployment.engine.chip_not_supported",
                "{engine} does not serve on {chip}: {reason}",
                engine=engine.name,
                chip=chip.name,
                reason=reason,
            )
        yield FieldFinding(field="engine", message=message)


def _check_spec(configuration: RevisionConfiguration) -> Iterator[FieldFinding]:
    engine = adapter_registry.engine_by_name(configuration.engine)
    try:
        facts = registry_selectors.served_model_facts(configuration.model_version)
    except ArtifactError:
        # Replicas need the files too, and report it; the spec can be checked without them.
        facts = registry_selectors.engine_model_facts(configuration.model_version)
    is_valid = True
    for chip in _configured_chips(configuration):
        wrong = engine.check(EngineTask.SERVE, configuration.spec, chip=chip, model=facts)
        is_valid = is_valid and not wrong
        yield from wrong or _check_parallelism(configuration, engine, chip=chip, model=facts)
    if is_valid and configuration.nodes > 1:
        yield from _check_nodes(engine, configuration.spec, nodes=configuration.nodes, model=facts)


def _check_parallelism(
    configuration: RevisionConfiguration, engine: Engine, *, chip: Chip, model: ModelFacts
) -> tuple[FieldFinding, ...]:
    group = engine.normalise(EngineTask.SERVE, configuration.spec).get("parallel")
    chips, cards = _configured_chips(configuration), configuration.cards
    if group is None or not 1 <= cards <= MOST_CARDS or check_cards_on_nodes(chips, cards):
        return ()
    return check_replica_parallelism(
        group,
        cards=configuration.cards,
        architecture=architecture_from_config(model.config),
        chip=chip,
        nodes=configuration.nodes,
    )


def _configured_chips(configuration: RevisionConfiguration) -> list[Chip]:
    known = adapter_registry.all_chips()
    return [known[name] for name in configuration.chips]


_PROCESSOR = "cpu"
#: Cards of a node where neither the fleet nor the profile of the chip says how many it has.
_DEFAULT_NODE_CARDS = 8
#: Fields of the calculator that a deployment's spec has under the same name.
_SAME_FIELDS = ("concurrency", "kv_precision", "memory_fraction")
_SAME_PARALLEL_FIELDS = ("tensor", "pipeline", "data")


def replica_memory(
    configuration: RevisionConfiguration, *, host_memory: Bytes | None = None
) -> sizing.SizingResult:
    """The memory of one replica on the first chip of the configuration.

    Empty fields: the context length of the model, and one concurrent request, because engines admit more only as
    far as memory is left.

    :param host_memory: limit for a chip that has no memory of its own; None for no limit.
    :raises sizing.SizingRefused: if the model cannot be sized, or a field is invalid.
    """
    chosen = configuration.with_engine()
    subject = sizing.sizing_subject_of_version(chosen.model_version)
    longest = registry_selectors.engine_model_facts(chosen.model_version).context_length
    requested = _sizing_request(chosen, longest=longest or subject.architecture.context)
    return sizing.estimate_memory(
        subject, requested, chip=chosen.chips[0], engine=chosen.engine, host_memory=host_memory
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FitResult:
    """The configuration on the fewest cards that hold one request, or on the most cards if none do."""

    configuration: RevisionConfiguration
    #: None if the model cannot be sized.
    sized: sizing.SizingResult | None
    #: Whether the configuration is invalid regardless of memory.
    refused: bool

    @classmethod
    def of(
        cls, configuration: RevisionConfiguration, sized: sizing.SizingResult | None
    ) -> _FitResult:
        refused = bool(revision_configuration_check(configuration, replicas=1))
        return cls(configuration=configuration, sized=sized, refused=refused)

    @property
    def fits(self) -> bool:
        """Also if the model cannot be sized."""
        return self.sized is None or _fits(self.sized)


def _fits(sized: sizing.SizingResult) -> bool:
    return sized.estimate.fits and sized.estimate.legal


def default_configuration(
    model_version: ModelVersion,
    *,
    chips: tuple[str, ...] = (),
    cards: int | None = None,
    **chosen: Any,
) -> RevisionConfiguration:
    """The configuration with the chip of the fleet that holds the model on the fewest cards.

    They are cards of one node, or all cards of 2, 4 … nodes of one cluster if no node holds the model and an
    engine serves it across nodes. A chip with enough free cards comes first. A model that cannot be sized gets one
    card. The processor is chosen if ``chips`` names it, or if its node holds the model and no accelerator of the
    fleet serves its kind.

    :param chips: replaces the chips of the fleet. If ``cards`` is given too, memory is not checked.
    :param cards: replaces the numbers of cards that are tried.
    :param chosen: further fields of the configuration.
    :raises sizing.SizingRefused: if the model needs more memory than the fleet has for one replica.
    """
    processor = RevisionConfiguration(
        model_version=model_version, chips=chips or (_PROCESSOR,), cards=cards or 1, **chosen
    )
    if chips and cards is not None:
        return processor
    nodes = fleet.largest_nodes()
    fitting: list[tuple[tuple[bool, bool, int, int], RevisionConfiguration]] = []
    too_small: list[_FitResult] = []
    for alternatives, free in _acceptable_chips(chips):
        candidate = replace(processor, chips=alternatives)
        sizes = _request_sizes(alternatives[0], nodes) if cards is None else (cards,)
        result = _with_fewest_cards(candidate, sizes)
        if result.fits:
            used = result.configuration.cards
            fitting.append(((result.refused, free < used, used, -free), result.configuration))
        else:
            too_small.append(result)
    # If every one is refused, the request is told what is wrong on a chip that holds the model.
    rank, best = min(fitting, key=lambda each: each[0], default=((True, True, 0, 0), processor))
    if not rank[0] or _PROCESSOR in chips:
        return best
    if serving := [result for result in too_small if not result.refused]:
        raise _insufficient_memory(serving)
    if not chips and (_PROCESSOR in nodes or not nodes):
        memory = nodes[_PROCESSOR].memory if nodes else 0
        # Its cards are shares of the cores; each of them uses the memory of the whole node.
        result = _with_fewest_cards(processor, (1,), host_memory=Bytes(memory) if memory else None)
        if result.fits and not result.refused:
            return processor
        if not result.fits:
            too_small.append(result)
    if too_small and not fitting:
        raise _insufficient_memory(too_small)
    return best


def _acceptable_chips(chips: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Alternatives with the number of their free cards: the given ones, or else each accelerator of the fleet."""
    known = adapter_registry.all_chips()
    if chips:
        # They are the only ones: whether cards are free decides nothing. The check names one that is unknown.
        if chips[0] in known:
            yield chips, 0
        return
    for chip, free in quotas.count_free_cards().items():
        if chip in known and known[chip].kind is not ChipKind.CPU:
            yield (chip,), free


def _request_sizes(name: str, nodes: Mapping[str, fleet.LargestNode]) -> tuple[int, ...]:
    """Numbers of cards that one replica may get in the fleet, ascending: of one node, then of 2, 4 … whole nodes.

    If the fleet has none of the chip, those of a usual node.
    """
    chip = adapter_registry.all_chips()[name]
    most = nodes[name].cards if name in nodes else chip.cards_per_node or _DEFAULT_NODE_CARDS
    # Without sizes of the hardware, powers of two: they divide what models have of everything.
    sizes = sorted(chip.legal_request_sizes) or [1 << bit for bit in range(most.bit_length())]
    of_one = tuple(size for size in sizes if size <= most) or (sizes[0],)
    whole = min(nodes[name].whole_nodes if name in nodes else 0, MOST_CARDS // most)
    return (*of_one, *(chip.cards_per_node << bit for bit in range(1, whole.bit_length())))


def _with_fewest_cards(
    candidate: RevisionConfiguration, sizes: Sequence[int], *, host_memory: Bytes | None = None
) -> _FitResult:
    """The first number of cards that holds one request and is not refused, or else one that holds it."""
    holding: list[_FitResult] = []
    too_small: list[tuple[RevisionConfiguration, sizing.SizingResult]] = []
    on_one_node = candidate.with_engine()
    for cards in sizes:
        chosen = replace(on_one_node, cards=cards)
        if chosen.nodes > 1:
            chosen = replace(candidate, cards=cards).with_engine()
            if not candidate.engine and _engine_refusals(chosen):
                continue
        try:
            sized = replica_memory(chosen, host_memory=host_memory)
        except sizing.SizingRefused:
            return _FitResult.of(replace(on_one_node, cards=sizes[0]), None)
        if _fits(sized):
            result = _FitResult.of(chosen, sized)
            if not result.refused:
                return result
            holding.append(result)
        else:
            too_small.append((chosen, sized))
    if holding:
        return holding[0]
    if not too_small:
        # Of several nodes only, which no engine spans: the check of the configuration says so.
        return _FitResult.of(replace(candidate, cards=sizes[0]), None)
    return _FitResult.of(*max(too_small, key=lambda each: (each[1].estimate.legal, each[0].cards)))


def _engine_refusals(configuration: RevisionConfiguration) -> list[str]:
    """Why its engine does not serve its model on one of its chips; empty if it does."""
    engine = adapter_registry.engine_by_name(configuration.engine)
    facts = registry_selectors.engine_model_facts(configuration.model_version)
    reasons = (
        engine_refusal(engine, chip=chip, model=facts, nodes=configuration.nodes)
        for chip in _configured_chips(configuration)
    )
    return [reason for reason in reasons if reason]


def _insufficient_memory(too_small: Sequence[_FitResult]) -> sizing.SizingRefused:
    """The refusal with the memory of the configuration that has the most."""
    sized, cards = max(
        (
            (result.sized, result.configuration.cards)
            for result in too_small
            if result.sized is not None
        ),
        key=lambda each: (each[0].estimate.legal, (each[0].estimate.limit or 0) * each[1]),
    )
    estimate = sized.estimate
    if not estimate.legal:
        return sizing.SizingRefused(estimate.findings)
    message = Reason(
        "deployment.memory.insufficient",
        "a replica of {model} requires {required} on {cards} × {chip}, where {available} is available; quantize "
        "the model, set a smaller context_length, use a chip with more memory or more nodes, or set both chips "
        "and cards to deploy without this check",
        model=sized.subject.name,
        required=format_bytes(estimate.total * cards),
        cards=cards,
        chip=sized.chip.label,
        available=format_bytes((estimate.limit or 0) * cards),
    )
    return sizing.SizingRefused((FieldFinding(field="cards", message=message),))


def _sizing_plan(chosen: RevisionConfiguration) -> dict[str, int]:
    """The parallel plan that the engine gets; empty if the spec names none and all cards share each layer."""
    values = chosen.spec.get("parallel") or {}
    if not isinstance(values, Mapping):
        # The check of the configuration names what is wrong, here as below.
        return {}
    named = {name: values[name] for name in _SAME_PARALLEL_FIELDS if values.get(name)}
    if chosen.nodes == 1 and not named:
        return named
    try:
        plan = replica_parallelism(values, cards=chosen.cards, nodes=chosen.nodes)
    except (TypeError, ValueError):
        return named
    return {name: getattr(plan, name) for name in _SAME_PARALLEL_FIELDS}


def _sizing_request(chosen: RevisionConfiguration, *, longest: int) -> dict[str, Any]:
    spec = chosen.spec
    given: dict[str, Any] = {"task": "serve", "concurrency": 1, "cards": chosen.cards}
    given |= {name: spec[name] for name in _SAME_FIELDS if spec.get(name) is not None}
    if context := spec.get("context_length") or longest:
        given["context"] = context
    if spec.get("precision", "auto") != "auto":
        given["precision"] = spec["precision"]
    given["parallel"] = _sizing_plan(chosen)
    configs = (registry_selectors.lora_config_facts(one.model_version) for one in chosen.adapters)
    if ranks := [facts.rank for facts in configs if facts is not None]:
        given |= {"adapters": len(ranks), "rank": max(ranks)}
    return given
