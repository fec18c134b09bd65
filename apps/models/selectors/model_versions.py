"""Models, their versions and LoRA adapters, imports from hubs, evaluations, quantization, and outputs of jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import F, Q, QuerySet, Sum

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import (
    Artifact,
    DatasetVersion,
    Evaluation,
    HubImport,
    ModelLine,
    ModelVersion,
)
from apps.models.selectors.storage import (
    ArtifactFileMissing,
    artifact_file,
    artifact_store,
    input_tree,
    parse_json_or_none,
    shared_or_team_filter,
)
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.quantization.schemes import MetricComparison, compare_metrics
from controlplane.domain.registry.lora_configs import (
    ADAPTER_CONFIG,
    LoraConfigFacts,
    adapter_files,
    parse_lora_config,
)
from controlplane.domain.registry.versions import (
    CONFIG_FILE,
    PIPELINE_FILE,
    ModelShape,
    ModelState,
    parse_licence,
    parse_model_shape,
)
from controlplane.domain.serving.model_kinds import ModelKind
from controlplane.domain.specs.evaluation import METRICS
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.engines import ModelFacts
from controlplane.ports.launches import InputArtifact
from controlplane.ports.model_hubs import ModelHub


def model_lines_visible(user: accounts.RequestUser) -> QuerySet[ModelLine]:
    """Models of the user's teams and those shared with every team."""
    return ModelLine.objects.filter(
        shared_or_team_filter(accounts.teams_visible(user), "team"), deleted_at=None
    ).select_related("team")


def model_versions_visible(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.filter(
        shared_or_team_filter(accounts.teams_visible(user), "line__team"), line__deleted_at=None
    ).select_related(
        "line__team", "base__line", "dataset_version__dataset", "artifact", "catalog_model"
    )


def model_versions_with_sources(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    """The visible versions, each with the hub import that it comes from."""
    return (
        model_versions_visible(user)
        .select_related("hub_import")
        .defer("hub_import__files", "hub_import__stored")
    )


def model_versions_usable(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    """Versions whose files are in the artifact store."""
    return model_versions_visible(user).filter(state=ModelState.READY)


def training_dataset_version(version: ModelVersion) -> DatasetVersion | None:
    """The dataset version that it was trained on, or else that of its nearest ancestor; None for an import."""
    step: ModelVersion | None = version
    while step is not None:
        if step.dataset_version is not None:
            return step.dataset_version
        step = step.base
    return None


def engine_model_facts(version: ModelVersion) -> ModelFacts:
    return ModelFacts(
        name=str(version),
        architecture=version.architecture,
        context_length=version.context_length,
        parameters=version.parameters,
        scheme=version.scheme,
        format=version.format,
        config=version.config or {},
        files=frozenset(version.artifact.tree) if version.artifact is not None else frozenset(),
        catalog_key=version.catalog_model.key if version.catalog_model is not None else "",
    )


#: Where a chat template is, the one that engines prefer first: a file of its own, of a processor, of a tokenizer.
_TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
#: Some tokenizer configurations list each of a hundred thousand added tokens.
_MAX_TEMPLATE_BYTES = 16 * 1024 * 1024


def served_model_facts(version: ModelVersion) -> ModelFacts:
    """As ``engine_model_facts``, with the chat template from its files; empty if it has none or they are removed.

    :raises ArtifactError: if the store has lost the file or does not answer.
    """
    facts = engine_model_facts(version)
    if facts.kind is not ModelKind.TEXT or version.artifact is None:
        return facts
    templates = (_chat_template(version.artifact, path) for path in _TEMPLATE_FILES)
    return replace(facts, chat_template=next(filter(None, templates), ""))


def _chat_template(artifact: Artifact, path: str) -> str:
    if path not in artifact.tree or artifact.removed_at is not None:
        return ""
    content, _ = artifact_file(artifact, path)
    with content:
        text = content.read(_MAX_TEMPLATE_BYTES).decode("utf-8", "replace")
    if not path.endswith(".json"):
        return text
    config = parse_json_or_none(text)
    found = config.get("chat_template") if isinstance(config, dict) else None
    # A tokenizer may have several, by name: one of them for tools.
    named = found if isinstance(found, list) else [{"template": found}]
    written = (each.get("template") for each in named if isinstance(each, dict))
    return "\n".join(each for each in written if isinstance(each, str))


def model_version_ancestors(
    version: ModelVersion, *, user: accounts.RequestUser
) -> list[ModelVersion]:
    """The version and its base versions, up to the first base or the first one that the user may not see."""
    visible = model_versions_with_sources(user)
    chain = [version]
    while (key := chain[-1].base_id) is not None:
        base = visible.filter(pk=key).first()
        if base is None:
            break
        chain.append(base)
    return chain


def importable_folders() -> list[dict[str, Any]]:
    """Folders under the model roots that look like models: ``{"name", "path"}``, by name."""
    folders = [
        config.parent
        for root in settings.NINEFOLD_MODEL_ROOTS
        for config in sorted(
            (*Path(root).glob(f"*/{CONFIG_FILE}"), *Path(root).glob(f"*/{PIPELINE_FILE}"))
        )
    ]
    return [{"name": folder.name, "path": str(folder)} for folder in folders]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """One metric of an evaluation and the base version's value on the same rows, if it was evaluated on them."""

    name: str
    value: Any
    base: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEvaluation:
    evaluation: Evaluation
    metrics: tuple[ComparedMetric, ...]


def evaluations_with_base(
    version: ModelVersion, *, user: accounts.RequestUser
) -> list[ComparedEvaluation]:
    """Evaluations on datasets that the user may see, newest first, each with the base version's newest metrics."""
    rows = Evaluation.objects.filter(
        model_version__in=[version.pk, version.base_id or 0],
        dataset_version__dataset__team__in=accounts.teams_visible(user),
    ).select_related("dataset_version__dataset")
    own, base = [], {}
    for row in rows.order_by("id"):
        if row.model_version_id == version.pk:
            own.append(row)
        else:
            base[row.dataset_version_id, row.split] = row.metrics
    return [
        _compare_evaluation(row, base.get((row.dataset_version_id, row.split), {}))
        for row in own[::-1]
    ]


def _compare_evaluation(evaluation: Evaluation, base: dict[str, Any]) -> ComparedEvaluation:
    return ComparedEvaluation(
        evaluation=evaluation,
        metrics=tuple(
            ComparedMetric(name=name, value=value, base=base.get(name))
            for name, value in evaluation.metrics.items()
            if isinstance(value, int | float)
        ),
    )


def evaluations_visible(user: accounts.RequestUser) -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(
        dataset_version__dataset__team__in=accounts.teams_visible(user)
    ).select_related("model_version__line", "dataset_version__dataset", "artifact")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutputs:
    """The outputs of one job; None for what it did not create."""

    model_version: ModelVersion | None
    evaluation: Evaluation | None
    artifact: Artifact | None


def outputs_of_job(*, job_uid: str, attempt_uids: Sequence[str]) -> JobOutputs:
    creators = [f"attempt:{uid}" for uid in attempt_uids]
    return JobOutputs(
        model_version=ModelVersion.objects.filter(job_uid=job_uid).select_related("line").first(),
        evaluation=Evaluation.objects.filter(job_uid=job_uid).first(),
        artifact=Artifact.objects.filter(created_by__in=creators).first(),
    )


#: Bytes. Larger files are not read for a page.
MAX_TEXT_SIZE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    shape: ModelShape
    #: Licence from its model card; empty if it names none.
    licence: str


def model_description(artifact: Artifact | None) -> ModelDescription | None:
    """What the model's own files say about it; None if its files have been removed."""
    if artifact is None or artifact.removed_at is not None:
        return None
    tree = artifact.tree
    try:
        return _model_description(tree["config.json"], tree.get("README.md", ""))
    except (KeyError, BlobMissing):
        return None


@lru_cache(maxsize=256)
def _model_description(config: str, card: str) -> ModelDescription:
    """Cached by digest: the content of a digest never changes."""
    return ModelDescription(
        shape=parse_model_shape(parse_json_or_none(_read_text_blob(config))),
        licence=parse_licence(_read_text_blob(card)) if card else "",
    )


def _read_text_blob(digest: str) -> str:
    store = artifact_store()
    if store.size(digest) > MAX_TEXT_SIZE:
        return ""
    with store.open(digest) as stream:
        return stream.read().decode(errors="replace")


ANSWERS = "quantization/answers.jsonl"
REPORT = "quantization/report.json"
#: Bytes of a report file that are read for a page.
_MAX_BYTES_READ = 4 << 20
_MAX_ANSWERS_SHOWN = 20
_MAX_TEXT_SHOWN = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationMetricChange:
    """One value before and after quantization."""

    name: str
    before: float | None
    after: float | None

    @property
    def share(self) -> float | None:
        """After divided by before; None if either is missing."""
        return self.after / self.before if self.before and self.after is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAnswer:
    row: int
    prompt: str
    reference: str
    before: str
    after: str
    right_before: bool
    right_after: bool

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerComparison:
    """Answers before and after quantization, changed ones first, with the total counts."""

    shown: tuple[ComparedAnswer, ...]
    total: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationReport:
    #: Bytes of all tensors, and of the quantized layers only.
    size: QuantizationMetricChange
    layers_size: QuantizationMetricChange
    #: Answers per second where the job ran, which may differ from the chip that serves it.
    speed: QuantizationMetricChange
    comparisons: tuple[MetricComparison, ...]
    answers: AnswerComparison
    #: As reported by the job: group size, calibration rows, software versions.
    report: Mapping[str, Any]


def is_quantized(version: ModelVersion) -> bool:
    return bool(version.scheme or version.format)


def quantization_report(
    version: ModelVersion, *, tolerance: Mapping[str, float | None]
) -> QuantizationReport:
    """What the quantization job measured, compared with the tolerance."""
    metrics = version.metrics
    metric_names = [name for name in METRICS if f"{name}_before" in metrics]
    return QuantizationReport(
        size=_quantization_metric_change(metrics, "size"),
        layers_size=_quantization_metric_change(metrics, "layers_size"),
        speed=_quantization_metric_change(metrics, "answers_per_second"),
        comparisons=compare_metrics(
            metrics, metric_names=metric_names, tolerance=tolerance
        ).comparisons,
        answers=_answer_comparison(version),
        report=_read_evaluation_report(version),
    )


def _quantization_metric_change(metrics: Mapping[str, Any], name: str) -> QuantizationMetricChange:
    def value_at(when: str) -> float | None:
        value = metrics.get(f"{name}_{when}")
        return value if isinstance(value, int | float) else None

    return QuantizationMetricChange(name=name, before=value_at("before"), after=value_at("after"))


def _answer_comparison(version: ModelVersion) -> AnswerComparison:
    answers = []
    for line in _read_artifact_text(version, ANSWERS).splitlines():
        try:
            row = json.loads(line)
            answers.append(_compared_answer(row))
        except (ValueError, KeyError, TypeError):
            # The last line may be truncated, and the file is written by the job.
            continue
    order = sorted(answers, key=lambda each: (not each.changed, each.row))
    return AnswerComparison(
        shown=tuple(order[:_MAX_ANSWERS_SHOWN]),
        total=len(answers),
        changed=sum(answer.changed for answer in answers),
    )


def _compared_answer(row: Mapping[str, Any]) -> ComparedAnswer:
    texts = {
        name: str(row[name])[:_MAX_TEXT_SHOWN]
        for name in ("prompt", "reference", "before", "after")
    }
    return ComparedAnswer(
        row=int(row["row"]),
        right_before=bool(row["right_before"]),
        right_after=bool(row["right_after"]),
        **texts,
    )


def _read_evaluation_report(version: ModelVersion) -> Mapping[str, Any]:
    try:
        report = json.loads(_read_artifact_text(version, REPORT))
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _read_artifact_text(version: ModelVersion, path: str) -> str:
    """The beginning of a file of the version's artifact; empty if it has no such file."""
    if version.artifact is None:
        return ""
    try:
        stream, _size = artifact_file(version.artifact, path)
    except (ArtifactFileMissing, BlobMissing):
        return ""
    with stream:
        return stream.read(_MAX_BYTES_READ).decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEndpoint:
    """A hub with the URL and the token by which this installation reaches it."""

    hub: ModelHub
    #: URL of the configured mirror, else of the hub.
    address: str
    token: str


def hub_endpoints() -> tuple[HubEndpoint, ...]:
    return tuple(hub_endpoint(name) for name in adapter_registry.hub_names())


def hub_endpoint(name: str) -> HubEndpoint:
    """:raises AdapterNotFound: if no package provides it."""
    hub = adapter_registry.hub_by_name(name)
    access = settings.NINEFOLD_HUBS.get(name)
    return HubEndpoint(
        hub=hub,
        address=(access.address if access else "") or hub.address,
        token=access.token if access else "",
    )


def hub_import_of(version: ModelVersion) -> HubImport | None:
    """The hub import of a version; None if it does not come from a hub."""
    found: HubImport | None = getattr(version, "hub_import", None)
    return found


def due_hub_imports(*, at: datetime) -> QuerySet[HubImport]:
    """Unfinished imports whose next attempt is due, least recently served first."""
    return (
        HubImport.objects.filter(version__state=ModelState.IMPORTING)
        .filter(Q(retry_at=None) | Q(retry_at__lte=at))
        .select_related("version__line__team")
        .order_by(F("served_at").asc(nulls_first=True), "id")
    )


def importing_bytes(team: Team) -> int:
    """Total size of the team's unfinished imports, in bytes."""
    rows = HubImport.objects.filter(version__state=ModelState.IMPORTING, version__line__team=team)
    return int(rows.aggregate(size=Sum("size"))["size"] or 0)


def versions_with_partial_downloads(*, failed_since: datetime) -> frozenset[str]:
    """Uids of versions whose partial downloads may still be resumed."""
    failed = Q(version__state=ModelState.FAILED, served_at__gte=failed_since)
    rows = HubImport.objects.filter(Q(version__state=ModelState.IMPORTING) | failed)
    return frozenset(rows.values_list("version__uid", flat=True))


def partial_downloads_folder() -> Path:
    """The folder of partial downloads, with one subfolder per version uid."""
    return Path(settings.NINEFOLD_HOME) / "tmp" / "hubs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """Bytes received by an import and its estimated time left."""

    received: int
    size: int
    #: Time left at the current speed; None if that is unknown.
    left: timedelta | None


def import_progress(found: HubImport) -> ImportProgress:
    missing = max(0, found.size - found.received)
    left = timedelta(seconds=missing / found.speed) if found.speed else None
    return ImportProgress(received=found.received, size=found.size, left=left)


#: Adapters of one base model that a form offers.
MAX_OFFERED = 50
_MAX_CONFIG_BYTES = 1024 * 1024


def lora_adapters_of(base: ModelVersion, *, user: accounts.RequestUser) -> Sequence[ModelVersion]:
    """The usable versions with a LoRA adapter that was trained from the base, the newest first."""
    derived = model_versions_usable(user).filter(base=base).order_by("-id")
    found = [
        version
        for version in derived
        if version.artifact is not None and adapter_files(version.artifact.tree)
    ]
    return found[:MAX_OFFERED]


def lora_config_facts(version: ModelVersion) -> LoraConfigFacts | None:
    """The facts of the version's LoRA adapter; None if it has none.

    :raises ValueError: if its configuration is not that of a LoRA adapter.
    :raises ArtifactFileMissing: if its bytes have been removed.
    :raises ArtifactError: if the store has lost it or does not answer.
    """
    artifact = version.artifact
    paths = adapter_files(artifact.tree) if artifact is not None else {}
    if artifact is None or not paths:
        return None
    content, _ = artifact_file(artifact, paths[ADAPTER_CONFIG])
    with content:
        return parse_lora_config(json.loads(content.read(_MAX_CONFIG_BYTES)))


def lora_adapter_input(name: str, version: ModelVersion) -> InputArtifact:
    """The files of the version's LoRA adapter as the input of a launch.

    :raises ValueError: if the version has no files.
    :raises BlobMissing: if its bytes have been removed.
    """
    if version.artifact is None:
        raise ReasonedValueError(
            "model_version.files.missing", "{version} has no files", version=str(version)
        )
    whole = input_tree(name, version.artifact).files
    paths = adapter_files(whole)
    return InputArtifact(name=name, files={file: whole[path] for file, path in paths.items()})
