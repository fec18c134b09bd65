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
