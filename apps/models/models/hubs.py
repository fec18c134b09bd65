"""Versions that come from a hub of models."""

from __future__ import annotations

from django.db import models

from apps.models.models.versions import ModelVersion
from controlplane.persistence.models import Entity


class HubImport(Entity):
    """Where a version comes from, and how much of it has arrived.

    The row outlives the import: it says for good which commit of which repository the version is.
    """

    version = models.OneToOneField(
        ModelVersion, on_delete=models.CASCADE, related_name="hub_import"
    )
    #: The adapter's name.
    hub = models.CharField(max_length=40)
    #: Where the hub or its mirror was asked.
    address = models.CharField(max_length=300)
    repository = models.CharField(max_length=200)
    #: What was asked for, and what that meant then.
    revision = models.CharField(max_length=200)
    commit = models.CharField(max_length=200)
    #: ``[{"path", "size", "sha256", "git_sha1"}]``, as the hub listed them.
    files = models.JSONField()
    #: Bytes of all of them.
    size = models.BigIntegerField()
    #: ``[[path, digest, size]]`` of those that are in the artifact store.
    stored = models.JSONField(default=list)
    #: Bytes that are here: of stored files, and of the one that is on its way.
    received = models.BigIntegerField(default=0)
    #: Of these, bytes that another version had brought already.
    spared = models.BigIntegerField(default=0)
    #: Bytes a second while it last made progress.
    speed = models.FloatField(null=True, blank=True)
    #: Tries in a row that brought nothing; each waits longer.
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    #: What went wrong last, while it is tried again.
    trouble = models.TextField(blank=True)
    #: Its turn comes after those that waited longer.
    served_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.repository} at {self.revision} from {self.hub}"
