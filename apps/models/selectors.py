"""Questions about datasets and models; where the artifacts lie."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.models.models import Artifact, Dataset, DatasetVersion, ModelLine, ModelVersion
from controlplane.domain.models import ModelState
from controlplane.ports import registry
from controlplane.ports.artifacts import ArtifactStore
from controlplane.ports.engines import ModelFacts
from controlplane.ports.launches import InputTree


@cache
def _store(kind: str, root: str) -> ArtifactStore:
    return registry.artifact_store(kind, {"root": root})


def artifact_store() -> ArtifactStore:
    return _store("filesystem", str(Path(settings.NINEFOLD_HOME, "artifacts")))


def datasets_visible(user: accounts.Person) -> QuerySet[Dataset]:
    return Dataset.objects.filter(team__in=accounts.teams_of(user)).select_related("team")


def dataset_versions_visible(user: accounts.Person) -> QuerySet[DatasetVersion]:
    return DatasetVersion.objects.filter(dataset__team__in=accounts.teams_of(user)).select_related(
        "dataset__team", "artifact", "created_by"
    )


def _shared_or_of(teams: QuerySet[Team], path: str) -> Q:
    return Q(**{f"{path}__in": teams}) | Q(**{f"{path}__isnull": True})


def model_lines_visible(user: accounts.Person) -> QuerySet[ModelLine]:
    """Lines of their teams and those that everybody may use."""
    return ModelLine.objects.filter(_shared_or_of(accounts.teams_of(user), "team")).select_related(
        "team"
    )


def model_versions_visible(user: accounts.Person) -> QuerySet[ModelVersion]:
    return ModelVersion.objects.filter(
        _shared_or_of(accounts.teams_of(user), "line__team")
    ).select_related("line__team", "base__line", "dataset_version__dataset", "artifact")


def model_versions_usable(user: accounts.Person) -> QuerySet[ModelVersion]:
    """Those whose files are here."""
    return model_versions_visible(user).filter(state=ModelState.READY)


def model_facts(version: ModelVersion) -> ModelFacts:
    return ModelFacts(
        name=str(version),
        architecture=version.architecture,
        context_length=version.context_length,
        parameters=version.parameters,
    )


def input_tree(name: str, artifact: Artifact) -> InputTree:
    return InputTree(name=name, files=artifact.tree)


def lineage_of(version: ModelVersion) -> list[ModelVersion]:
    """The version and what it was made from, down to the first base."""
    chain = [version]
    while (base := chain[-1].base) is not None:
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
