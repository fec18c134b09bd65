"""Storage quotas, retention rules, measured sizes, and runs of retention and garbage collection."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from apps.accounts.models import Team
from controlplane.domain.storage.usage import StorageKind
from controlplane.persistence.models import Entity


class StorageQuota(models.Model):
    """Maximum bytes that a team may store. A team without a row has no limit."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="storage_quota")
    limit = models.BigIntegerField(help_text="Bytes.")

    class Meta:
        verbose_name_plural = "storage quotas"
        constraints = (
            models.CheckConstraint(condition=models.Q(limit__gte=0), name="quota_not_negative"),
        )

    def __str__(self) -> str:
        return f"{self.team}: {self.limit} bytes"


class RetentionRule(models.Model):
    """Retention rules of a team; the row without a team applies to teams without rules of their own.

    The fields are those of ``controlplane.domain.storage.retention.RetentionRules``.
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


class StorageRun(Entity):
    """One run of retention or of garbage collection, with its results."""

    class Kind(StrEnum):
        RETENTION = "retention"
        GARBAGE = "garbage"

    KINDS = [(kind.value, kind.value) for kind in Kind]

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
    error = models.TextField(blank=True)

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
