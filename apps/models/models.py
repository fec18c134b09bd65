"""Catalog models, artifacts, datasets, model versions with their lineage, evaluations, imports, and storage."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.accounts.models import Team, User
from controlplane.domain.catalog import CatalogTask, SupportCaveat, SupportLevel
from controlplane.domain.registry.versions import GateDecision, ModelState
from controlplane.domain.storage.team_storage import StorageKind
from controlplane.persistence.models import Transition, UidModel
from controlplane.persistence.reasons import ReasonField


class CatalogModel(models.Model):
    """One published model. Null and empty mean unknown; ``confidence`` rates the known facts."""

    #: The stable name, as in the data, for example ``qwen2-7b-instruct``.
    key = models.CharField(max_length=80, unique=True)
    title = models.CharField(max_length=120)
    family = models.CharField(max_length=60, db_index=True)
    #: ``llm``, ``vlm``, ``embedding`` …
    modality = models.CharField(max_length=20)
    tasks = ArrayField(models.CharField(max_length=40), default=list)
    parameters = models.BigIntegerField(null=True, blank=True)
    #: Parameters active per token of a mixture of experts.
    active_parameters = models.BigIntegerField(null=True, blank=True)
    architecture = models.CharField(max_length=120)
    layers = models.PositiveIntegerField(null=True, blank=True)
    hidden = models.PositiveIntegerField(null=True, blank=True)
    heads = models.PositiveIntegerField(null=True, blank=True)
    kv_heads = models.PositiveIntegerField(null=True, blank=True)
    head_dim = models.PositiveIntegerField(null=True, blank=True)
    intermediate = models.PositiveIntegerField(null=True, blank=True)
    #: ``mha``, ``gqa``, ``mqa``, ``mla``, or a description of a hybrid.
    attention = models.CharField(max_length=60, blank=True)
    #: ``{"kv_lora_rank", "qk_rope_head_dim"}``.
    mla = models.JSONField(null=True, blank=True)
    #: ``{"experts", "top_k", "shared_experts", "moe_intermediate"}``.
    moe = models.JSONField(null=True, blank=True)
    #: Parts of a pipeline: encoders, denoiser blocks.
    components = models.JSONField(default=dict, blank=True)
    #: Maximum positions of the published configuration.
    context_length = models.PositiveIntegerField(null=True, blank=True)
    #: Maximum positions with RoPE scaling.
    context_extended = models.PositiveIntegerField(null=True, blank=True)
    dtype = models.CharField(max_length=60)
    #: Bytes per token of a 16-bit KV cache.
    kv_bytes_per_token = models.PositiveIntegerField(null=True, blank=True)
    licence = models.CharField(max_length=60, blank=True)
    hf_repo = models.CharField(max_length=120, blank=True, db_index=True)
    modelscope_id = models.CharField(max_length=120, blank=True, db_index=True)
    #: Repositories with quantized weights of it.
    prequantized = ArrayField(models.CharField(max_length=120), default=list, blank=True)
    #: Group of facts → ``high`` or ``medium``.
    confidence = models.JSONField(default=dict)
    #: Keys of the sources that the entry rests on.
    evidence = ArrayField(models.CharField(max_length=40), default=list)
    notes = models.TextField(blank=True)
    #: SHA-256 of the entry as it was loaded.
    digest = models.CharField(max_length=64)
    #: Set when the data files no longer contain it; the row stays for versions that refer to it.
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("key",)

    def __str__(self) -> str:
        return self.title


class CatalogCell(models.Model):
    """Support of one task by one engine on one vendor's chips, according to the evidence."""

    TASKS = [(task.value, task.value) for task in CatalogTask]
    STATUSES = [(status.value, status.value) for status in SupportLevel]
    CAVEATS = [(caveat.value, caveat.value) for caveat in SupportCaveat]

    model = models.ForeignKey(CatalogModel, on_delete=models.CASCADE, related_name="cells")
    task = models.CharField(max_length=20, choices=TASKS)
    vendor = models.CharField(max_length=40)
    engine = models.CharField(max_length=40)
    status = models.CharField(max_length=20, choices=STATUSES)
    #: Engine versions that the evidence covers, as a PEP 440 specifier; empty if it does not say.
    versions = models.CharField(max_length=60, blank=True)
    #: Training methods or quantization schemes.
    methods = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: Keys of the sources.
    evidence = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    #: What limits the claim; empty if nothing does.
    caveat = models.CharField(max_length=40, choices=CAVEATS, blank=True)

    class Meta:
        ordering = ("task", "vendor", "engine")
        constraints = (
            models.UniqueConstraint(
                fields=("model", "task", "vendor", "engine"), name="catalog_cell_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.model_id}: {self.task} by {self.engine} on {self.vendor}: {self.status}"


class ArtifactKind(StrEnum):
    MODEL = "model"
    DATASET = "dataset"
    CODE = "code"
    REPORT = "report"
    OUTPUTS = "outputs"


class Artifact(UidModel):
    """An immutable tree of files in the artifact store."""

    KINDS = [(kind.value, kind.value) for kind in ArtifactKind]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, null=True, related_name="artifacts")
    kind = models.CharField(max_length=20, choices=KINDS)
    #: ``[{"path", "digest", "size"}]`` in path order.
    files = models.JSONField()
    #: Bytes of all files.
    size = models.BigIntegerField()
    #: Creator, for example ``attempt:UID``; unique, so a creator has at most one artifact.
    created_by = models.CharField(max_length=60, null=True, blank=True, unique=True)
    #: Pinned artifacts are not removed by retention rules.
    pinned_at = models.DateTimeField(null=True, blank=True)
    #: Its bytes are removed after the restore window unless it is restored.
    deleted_at = models.DateTimeField(null=True, blank=True)
    #: Username, or the rule that removed it.
    deleted_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    #: Reason as a message.
    deletion_reason = ReasonField()
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


class Dataset(UidModel):
    """A named series of dataset versions."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="datasets")
    name = models.SlugField(max_length=80)
    description = models.TextField(blank=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    #: Restoring one of its versions clears it; the row stays for jobs that refer to its versions.
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("team", "name"),
                condition=models.Q(deleted_at=None),
                name="dataset_name_once_in_team",
            ),
        )


class DatasetVersion(UidModel):
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


class ModelLine(UidModel):
    """A named series of model versions, shared with every team if it has no team."""

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="model_lines"
    )
    name = models.SlugField(max_length=80)
    description = models.TextField(blank=True)
    #: Restoring one of its versions clears it; the row stays for jobs that refer to its versions.
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("team", "name"),
                condition=models.Q(deleted_at=None),
                name="model_name_once_in_team",
                nulls_distinct=False,
            ),
        )


class ModelVersion(UidModel):
    """Weights, configuration and tokenizer, with their lineage."""

    STATES = [(state.value, state.value) for state in ModelState]
    GATE_DECISIONS = [(acceptance.value, acceptance.value) for acceptance in GateDecision]

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
        max_length=20, choices=GATE_DECISIONS, default=GateDecision.ACCEPTED, db_default="accepted"
    )
    #: Message: which metric exceeds which tolerance, or who overrode the gate and why.
    acceptance_reason = ReasonField()
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


class Evaluation(UidModel):
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


class HubImport(UidModel):
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
    error = ReasonField()
    #: Last time that the controller fetched for it; the least recent comes first.
    served_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision} from {self.hub}"


class StorageQuota(models.Model):
    """Maximum bytes that a team may store. A team without a row has no limit."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="storage_quota")
    limit = models.BigIntegerField(help_text="Size in bytes.")

    class Meta:
        verbose_name_plural = "storage quotas"
        constraints = (
            models.CheckConstraint(condition=models.Q(limit__gte=0), name="quota_not_negative"),
        )

    def __str__(self) -> str:
        return f"{self.team}: {self.limit} bytes"


class RetentionRule(models.Model):
    """Retention rules of a team; the row without a team applies to teams without rules of their own.

    The fields are those of ``controlplane.domain.storage.team_storage.RetentionRules``.
    """

    team = models.OneToOneField(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="retention_rule"
    )
    enabled = models.BooleanField(default=False)
    keep_versions = models.PositiveIntegerField(null=True, blank=True)
    checkpoint_days = models.PositiveIntegerField(null=True, blank=True)
    failed_days = models.PositiveIntegerField(null=True, blank=True)
    log_days = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("team",), name="retention_once_for_team", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"retention of {self.team or 'every other team'}"


class StorageMeasure(models.Model):
    """Measured bytes outside artifacts: a working folder on a cluster, a log in the store."""

    KINDS = [(kind.value, kind.value) for kind in StorageKind]

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, choices=KINDS)
    #: Uid of the attempt that it belongs to.
    owner_uid = models.CharField(max_length=32)
    size = models.BigIntegerField()
    measured_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("kind", "owner_uid"), name="measured_once"),)
        indexes = (models.Index(fields=("team", "kind"), name="measure_by_team"),)

    def __str__(self) -> str:
        return f"{self.kind} of {self.owner_uid[:8]}: {self.size} bytes"


class StorageRunKind(StrEnum):
    RETENTION = "retention"
    GARBAGE = "garbage"


class StorageRun(UidModel):
    """One run of retention or of garbage collection, with its results."""

    KINDS = [(kind.value, kind.value) for kind in StorageRunKind]

    kind = models.CharField(max_length=20, choices=KINDS)
    dry_run = models.BooleanField(default=False)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    #: Items examined.
    examined = models.PositiveIntegerField(default=0)
    #: Garbage: blobs set aside, to be discarded by a later run.
    set_aside = models.PositiveIntegerField(default=0)
    #: Items removed, and their bytes.
    removed = models.PositiveIntegerField(default=0)
    removed_bytes = models.BigIntegerField(default=0)
    #: Retention: ``[{"kind", "name", "size", "reason"}]``, the largest first, cut where it is long.
    details = models.JSONField(default=list, blank=True)
    #: Garbage: the last digest examined; empty when the run is complete.
    cursor = models.CharField(max_length=80, blank=True)
    error = ReasonField()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("kind", "-id"), name="storage_run_by_kind"),)

    def __str__(self) -> str:
        return f"{self.kind} at {self.started_at:%Y-%m-%d %H:%M}"


class StoreSize(models.Model):
    """Size of the artifact store when it was last counted. One row."""

    counted_at = models.DateTimeField()
    blobs = models.BigIntegerField()
    size = models.BigIntegerField()
    #: Of these, bytes set aside for removal.
    set_aside = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.blobs} blobs, {self.size} bytes"
