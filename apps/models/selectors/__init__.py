"""Questions about datasets and models; where the artifacts lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db.models import OuterRef, Prefetch, Q, QuerySet, Subquery

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import (
    Artifact,
    Dataset,
    DatasetVersion,
    Evaluation,
    ModelLine,
    ModelVersion,
)
from controlplane.domain.models import ModelState
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactStore, BlobMissing
from controlplane.ports.engines import ModelFacts
from controlplane.ports.launches import InputTree


@cache
def _store(kind: str, root: str) -> ArtifactStore:
    return registry.artifact_store(kind, {"root": root})


def artifact_store() -> ArtifactStore:
    return _store("filesystem", str(Path(settings.NINEFOLD_HOME, "artifacts")))


def datasets_visible(user: accounts.RequestUser) -> QuerySet[Dataset]:
    return Dataset.objects.filter(team__in=accounts.teams_of(user)).select_related("team")


def dataset_versions_visible(user: accounts.RequestUser) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(dataset__team__in=accounts.teams_of(user)).select_related(
        "dataset__team", "artifact", "created_by"
    )


def _shared_or_of(teams: QuerySet[Team], path: str) -> Q:
    return Q(**{f"{path}__in": teams}) | Q(**{f"{path}__isnull": True})


def model_lines_visible(user: accounts.RequestUser) -> QuerySet[ModelLine]:
    """Lines of their teams and those that everybody may use."""
    return ModelLine.objects.filter(_shared_or_of(accounts.teams_of(user), "team")).select_related(
        "team"
    )


def model_versions_visible(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.filter(
        _shared_or_of(accounts.teams_of(user), "line__team")
    ).select_related("line__team", "base__line", "dataset_version__dataset", "artifact")


def dataset_versions_usable(user: accounts.RequestUser) -> QuerySet[DatasetVersion]:
    """Those whose rows are here."""
    return dataset_versions_visible(user).filter(
        artifact__deleted_at=None, artifact__removed_at=None
    )


def model_versions_usable(user: accounts.RequestUser) -> QuerySet[ModelVersion]:
    """Those whose files are here."""
    return model_versions_visible(user).filter(state=ModelState.READY)


def learned_from(version: ModelVersion) -> DatasetVersion | None:
    """The rows that it was trained on, or else the nearest of those that it was made from; None of an import."""
    step: ModelVersion | None = version
    while step is not None:
        if step.dataset_version is not None:
            return step.dataset_version
        step = step.base
    return None


def model_facts(version: ModelVersion) -> ModelFacts:
    return ModelFacts(
        name=str(version),
        architecture=version.architecture,
        context_length=version.context_length,
        parameters=version.parameters,
        scheme=version.scheme,
        format=version.format,
        config=version.config or {},
    )


def input_tree(name: str, artifact: Artifact) -> InputTree:
    """:raises BlobMissing: if its bytes have been removed."""
    if artifact.removed_at is not None:
        raise BlobMissing(
            f"the bytes of {name} are gone since {artifact.removed_at:%Y-%m-%d}: "
            f"{artifact.deletion_reason}"
        )
    return InputTree(name=name, files=artifact.tree)


def lineage_of(version: ModelVersion, *, user: accounts.RequestUser) -> list[ModelVersion]:
    """The version and what it was made from, down to the first base or to one that they may not see."""
    visible = model_versions_visible(user)
    chain = [version]
    while (key := chain[-1].base_id) is not None:
        base = visible.filter(pk=key).first()
        if base is None:
            break
        chain.append(base)
    return chain


def registrable_folders() -> list[dict[str, Any]]:
    """Folders under the model roots that look like models: ``{"name", "path"}``, by name."""
    folders = [
        config.parent
        for root in settings.NINEFOLD_MODEL_ROOTS
        for config in sorted(Path(root).glob("*/config.json"))
    ]
    return [{"name": folder.name, "path": str(folder)} for folder in folders]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigure:
    """One metric of an evaluation beside the base's on the same rows, where that was measured."""

    name: str
    value: Any
    base: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEvaluation:
    evaluation: Evaluation
    figures: tuple[ComparedFigure, ...]


def evaluations_of(
    version: ModelVersion, *, user: accounts.RequestUser
) -> list[ComparedEvaluation]:
    """What was measured on datasets that they may see, newest first, beside the base's newest."""
    rows = Evaluation.objects.filter(
        model_version__in=[version.pk, version.base_id or 0],
        dataset_version__dataset__team__in=accounts.teams_of(user),
    ).select_related("dataset_version__dataset")
    own, base = [], {}
    for row in rows.order_by("id"):
        if row.model_version_id == version.pk:
            own.append(row)
        else:
            base[row.dataset_version_id, row.split] = row.metrics
    return [_compared(row, base.get((row.dataset_version_id, row.split), {})) for row in own[::-1]]


def _compared(evaluation: Evaluation, base: dict[str, Any]) -> ComparedEvaluation:
    return ComparedEvaluation(
        evaluation=evaluation,
        figures=tuple(
            ComparedFigure(name=name, value=value, base=base.get(name))
            for name, value in evaluation.metrics.items()
            if isinstance(value, int | float)
        ),
    )


def datasets_with_versions(user: accounts.RequestUser) -> QuerySet[Dataset]:
    """Datasets with ``versions`` at hand, the newest first, without their rows' figures."""
    light = DatasetVersion.objects.defer("statistics", "preview").order_by("-number")
    return datasets_visible(user).prefetch_related(Prefetch("versions", queryset=light))


def datasets_with_newest(user: accounts.RequestUser) -> QuerySet[Dataset]:
    """Datasets with ``newest_uid``, ``newest_number``, ``newest_at``, ``rows`` and ``size`` (bytes) of
    their newest version."""
    newest = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by("-number")
    return datasets_visible(user).annotate(
        newest_uid=Subquery(newest.values("uid")[:1]),
        newest_number=Subquery(newest.values("number")[:1]),
        newest_at=Subquery(newest.values("created_at")[:1]),
        rows=Subquery(newest.values("row_count")[:1]),
        size=Subquery(newest.values("artifact__size")[:1]),
    )


def artifacts_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Artifacts of their teams and those that everybody may use."""
    return Artifact.objects.filter(_shared_or_of(accounts.teams_of(user), "team")).select_related(
        "team"
    )


def code_visible(user: accounts.RequestUser) -> QuerySet[Artifact]:
    """Archives that a script job may run."""
    return artifacts_visible(user).filter(
        kind=Artifact.Kind.CODE, team__isnull=False, deleted_at=None, removed_at=None
    )


def evaluations_visible(user: accounts.RequestUser) -> QuerySet[Evaluation]:
    return Evaluation.objects.filter(
        dataset_version__dataset__team__in=accounts.teams_of(user)
    ).select_related("model_version__line", "dataset_version__dataset", "artifact")


class NoSuchFile(LookupError):
    """The artifact has no file of that path."""


def artifact_file(artifact: Artifact, path: str) -> tuple[BinaryIO, int]:
    """The file opened, and its size in bytes. The caller closes it.

    :raises NoSuchFile: if there is none of that path, or its bytes have been removed.
    :raises BlobMissing: if the store has lost it.
    """
    if artifact.removed_at is not None:
        raise NoSuchFile(
            f"its bytes are gone since {artifact.removed_at:%Y-%m-%d}: {artifact.deletion_reason}"
        )
    digest = artifact.tree.get(path)
    if digest is None:
        raise NoSuchFile(f"there is no file {path!r}; there are {', '.join(artifact.tree)}")
    store = artifact_store()
    return store.open(digest), store.size(digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What one job made; what it did not make is None."""

    model_version: ModelVersion | None
    evaluation: Evaluation | None
    artifact: Artifact | None


def outputs_of(*, job_uid: str, attempt_uids: Sequence[str]) -> Outputs:
    """Everything that the job's attempts made."""
    made_by = [f"attempt:{uid}" for uid in attempt_uids]
    return Outputs(
        model_version=ModelVersion.objects.filter(job_uid=job_uid).select_related("line").first(),
        evaluation=Evaluation.objects.filter(job_uid=job_uid).first(),
        artifact=Artifact.objects.filter(made_by__in=made_by).first(),
    )
