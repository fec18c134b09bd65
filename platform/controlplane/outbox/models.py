from __future__ import annotations

from django.db import models


class OutboxMessage(models.Model):
    """A message. Delivered at least once; handlers are idempotent."""

    topic = models.CharField(max_length=80)
    payload = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "outbox_message"
        indexes = (
            models.Index(
                fields=("id",), name="outbox_undelivered", condition=models.Q(delivered_at=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic} #{self.pk}"


class ResourceChange(models.Model):
    """A committed change of a row that lists of REST show; see ``controlplane.outbox.resource_changes``.

    Only triggers write it.
    """

    OPERATIONS = [("I", "inserted"), ("U", "updated"), ("D", "deleted")]

    #: Table of the row.
    source = models.CharField(max_length=60)
    uid = models.CharField(max_length=60)
    #: Whose row it is: ``team:7``, ``user:3``; empty: no single team's or user's.
    owner = models.CharField(max_length=24, blank=True)
    operation = models.CharField(max_length=1, choices=OPERATIONS)
    #: Identifier of the transaction.
    xid = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "outbox_resource_change"
        indexes = (
            models.Index(fields=("source", "xid"), name="resource_change_position"),
            models.Index(fields=("created_at",), name="resource_change_age"),
        )

    def __str__(self) -> str:
        return f"{self.operation} {self.source} {self.uid}"
