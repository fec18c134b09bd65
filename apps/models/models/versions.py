"""Artifacts, datasets, model versions with their lineage, evaluations and hub imports."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.db import models

from apps.accounts.models import Team, User
from apps.models.models.catalog import CatalogModel
from controlplane.domain.registry.versions import GateDecision, ModelState
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
    #: Creator, for example ``attempt:UID``; unique, so a creator has at most one artifact.
    made_by = models.CharField(max_length=60, null=True, blank=True, unique=True)
    #: Pinned artifacts are not removed by retention rules.
    pinned_at = models.DateTimeField(null=True, blank=True)
    #: Its bytes are removed after the restore window unless it is restored.
    deleted_at = models.DateTimeField(null=True, blank=True)
    #: Username, or the rule that removed it.
    deleted_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    #: Reason as a message.
    deletion_reason = models.TextField(blank=True, default="", db_default="")
    #: Set when its bytes were released; the list of files stays.
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
        """Whether its bytes are stored and it is not deleted."""
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
    """Rows in canonical form, split into training, validation and test."""

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
    """A named series of model versions, shared with every team if it has no team."""

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
    """Weights, configuration and tokenizer, with their lineage."""

    STATES = [(state.value, state.value) for state in ModelState]
    ACCEPTANCES = [(acceptance.value, acceptance.value) for acceptance in GateDecision]

    line = models.ForeignKey(ModelLine, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=STATES, default=ModelState.IMPORTING)
    #: None until the files are in the artifact store.
    artifact = models.OneToOneField(Artifact, on_delete=models.PROTECT, null=True, blank=True)
    #: Folder that it is imported from; empty if a job created it.
    source_path = models.TextField(blank=True)
    #: ``architectures[0]`` of config.json.
    architecture = models.CharField(max_length=120, blank=True)
    context_length = models.PositiveIntegerField(default=0)
    parameters = models.BigIntegerField(default=0)
    #: Quantization scheme, for example ``w8a8``; empty if not quantized.
    scheme = models.CharField(max_length=40, blank=True, default="", db_default="")
    #: Format of quantized weights, for example ``compressed-tensors``; empty if not quantized.
    format = models.CharField(max_length=40, blank=True, default="", db_default="")
    #: Deployment gate; only an accepted version can be deployed.
    acceptance = models.CharField(
        max_length=20, choices=ACCEPTANCES, default=GateDecision.ACCEPTED, db_default="accepted"
    )
    #: Message: which metric exceeds which tolerance, or who overrode the gate and why.
    acceptance_reason = models.TextField(blank=True, default="", db_default="")
    #: ``config.json`` as read; null for versions registered before it was stored.
    config = models.JSONField(null=True, blank=True)
    #: Catalog entry of the model, if it is known.
    catalog_model = models.ForeignKey(
        CatalogModel, on_delete=models.PROTECT, null=True, blank=True, related_name="versions"
    )
    base = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="derived"
    )
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="models"
    )
    #: Uid of the job that created it (jobs import models, not the reverse).
    job_uid = models.CharField(max_length=32, blank=True, db_index=True)
    #: Its attempt; registering is keyed by it, so that it happens once.
    attempt_uid = models.CharField(max_length=32, null=True, blank=True, unique=True)
    #: Last metrics of the job that created it.
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
    """Metrics of a model version on a dataset version."""

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
    """``(path, digest, size)`` triples in the format of ``Artifact.files``."""
    return [{"path": path, "digest": digest, "size": size} for path, digest, size in sorted(files)]


class HubImport(Entity):
    """Origin and progress of a version that is imported from a hub.

    The row outlives the import: it records which commit of which repository the version is.
    """

    version = models.OneToOneField(
        ModelVersion, on_delete=models.CASCADE, related_name="hub_import"
    )
    #: Name of the hub adapter.
    hub = models.CharField(max_length=40)
    #: URL of the hub or its mirror.
    address = models.CharField(max_length=300)
    repository = models.CharField(max_length=200)
    #: Requested revision, and the commit that it resolved to.
    revision = models.CharField(max_length=200)
    commit = models.CharField(max_length=200)
    #: ``[{"path", "size", "sha256", "git_sha1"}]`` from the hub's listing.
    files = models.JSONField()
    #: Bytes of all of them.
    size = models.BigIntegerField()
    #: ``[[path, digest, size]]`` of those that are in the artifact store.
    stored = models.JSONField(default=list)
    #: Bytes received: stored files, and the partial download.
    received = models.BigIntegerField(default=0)
    #: Of these, bytes that were already in the artifact store.
    spared = models.BigIntegerField(default=0)
    #: Bytes per second of the last download.
    speed = models.FloatField(null=True, blank=True)
    #: Consecutive failed attempts, with increasing delays.
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    #: Last error while it is retried.
    trouble = models.TextField(blank=True)
    #: Last time that the controller fetched for it; the least recent comes first.
    served_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision} from {self.hub}"
