"""Artifacts, datasets, model versions, and what they were made from."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models

from apps.accounts.models import Team, User
from apps.models.models.catalog import CatalogModel
from controlplane.domain.models import Acceptance, ModelState
from controlplane.persistence.models import Entity, Transition


class Artifact(Entity):
    """An immutable tree of files in the artifact store."""

    class Kind(StrEnum):
        MODEL = "model"
        DATASET = "dataset"
        CODE = "code"
        REPORT = "report"
        OUTPUTS = "outputs"

    KINDS = [(kind.value, kind.value) for kind in Kind]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="artifacts")
    kind = models.CharField(max_length=20, choices=KINDS)
    #: ``[{"path", "digest", "size"}]`` in path order.
    files = models.JSONField()
    #: Bytes of all files.
    size = models.BigIntegerField()
    #: What made it, for example ``attempt`` and its uid; once only for each maker.
    made_by = models.CharField(max_length=60, null=True, blank=True, unique=True)
    #: No rule removes its bytes.
    pinned_at = models.DateTimeField(null=True, blank=True)
    #: Asked to be deleted: its bytes go a while later unless somebody has it back.
    deleted_at = models.DateTimeField(null=True, blank=True)
    #: Who asked, or the rule that removed it.
    deleted_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    #: Why, in words.
    deletion_reason = models.TextField(blank=True, default="", db_default="")
    #: The bytes are no longer its own; the list of files stays.
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (
            models.Index(
                fields=("team", "kind"),
                name="artifact_with_bytes",
                condition=models.Q(removed_at=None),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.uid[:8]}"

    @property
    def usable(self) -> bool:
        """Its bytes are here and nobody has asked to delete it."""
        return self.deleted_at is None and self.removed_at is None

    @property
    def tree(self) -> dict[str, str]:
        """Relative path → digest."""
        return {file["path"]: file["digest"] for file in self.files}


class Dataset(Entity):
    """A named series of dataset versions."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="datasets")
    name = models.SlugField(max_length=80)
    description = models.TextField(blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("team", "name"), name="dataset_name_once_in_team"),
        )

    def __str__(self) -> str:
        return self.name


class DatasetVersion(Entity):
    """Rows in canonical form, split for training, validation and testing."""

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    artifact = models.OneToOneField(Artifact, on_delete=models.PROTECT)
    #: SHA-256 over the canonical rows: the same rows are the same version, whatever the file's format.
    content_hash = models.CharField(max_length=80)
    source_name = models.CharField(max_length=200)
    row_count = models.PositiveIntegerField()
    #: Rows by split, lengths, schema; see ``controlplane.domain.datasets``.
    statistics = models.JSONField()
    #: The first rows, shortened.
    preview = models.JSONField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("dataset", "number"), name="dataset_version_number"),
            models.UniqueConstraint(
                fields=("dataset", "content_hash"), name="dataset_version_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.dataset} v{self.number}"


class ModelLine(Entity):
    """A named series of model versions. No team means that everybody may use it."""

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="model_lines"
    )
    name = models.SlugField(max_length=80)
    description = models.TextField(blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("team", "name"), name="model_name_once_in_team", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return self.name


class ModelVersion(Entity):
    """Weights, configuration and tokenizer, with what they were made from."""

    STATES = [(state.value, state.value) for state in ModelState]
    ACCEPTANCES = [(acceptance.value, acceptance.value) for acceptance in Acceptance]

    line = models.ForeignKey(ModelLine, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=STATES, default=ModelState.IMPORTING)
    #: None until the files are in the artifact store.
    artifact = models.OneToOneField(Artifact, on_delete=models.PROTECT, null=True, blank=True)
    #: The folder that it is imported from; empty when a job made it.
    source_path = models.TextField(blank=True)
    #: ``architectures[0]`` of config.json.
    architecture = models.CharField(max_length=120, blank=True)
    context_length = models.PositiveIntegerField(default=0)
    parameters = models.BigIntegerField(default=0)
    #: What its weights are quantized to, for example ``w8a8``; empty for plain ones.
    scheme = models.CharField(max_length=40, blank=True, default="", db_default="")
    #: How quantized weights are written, for example ``compressed-tensors``; empty for plain ones.
    format = models.CharField(max_length=40, blank=True, default="", db_default="")
    #: Whether what it was made for was reached; only an accepted version is deployed.
    acceptance = models.CharField(
        max_length=20, choices=ACCEPTANCES, default=Acceptance.ACCEPTED, db_default="accepted"
    )
    #: Of the acceptance, in words: which figure against which tolerance, or who decided and why.
    acceptance_reason = models.TextField(blank=True, default="", db_default="")
    #: ``config.json`` as it was read; null for versions from before it was kept.
    config = models.JSONField(null=True, blank=True)
    #: What the catalog says of these weights, where it is known which entry they are of.
    catalog_model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, null=True, blank=True, related_name="versions"
    )
    base = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="derived"
    )
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="models"
    )
    #: The job that made it, by uid (jobs know models, not the other way round).
    job_uid = models.CharField(max_length=32, blank=True, db_index=True)
    #: Its attempt; registering is keyed by it, so that it happens once.
    attempt_uid = models.CharField(max_length=32, null=True, blank=True, unique=True)
    #: Last figures of the run that made it.
    metrics = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("line", "number"), name="model_version_number"),
        )

    def __str__(self) -> str:
        return f"{self.line} v{self.number}"


class ModelVersionTransition(Transition):
    entity = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class Evaluation(Entity):
    """The measured quality of a model version on a dataset version."""

    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, related_name="evaluations"
    )
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, related_name="evaluations"
    )
    split = models.CharField(max_length=20)
    metrics = models.JSONField()
    artifact = models.OneToOneField(Artifact, on_delete=models.PROTECT)
    job_uid = models.CharField(max_length=32, blank=True, db_index=True)
    attempt_uid = models.CharField(max_length=32, unique=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.model_version} on {self.dataset_version}"


def files_json(files: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """``(path, digest, size)`` triples as ``Artifact.files`` keeps them."""
    return [{"path": path, "digest": digest, "size": size} for path, digest, size in sorted(files)]
