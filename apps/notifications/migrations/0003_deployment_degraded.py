from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

_OLD, _NEW = "deployment.troubled", "deployment.degraded"
_KINDS = (
    "job.succeeded",
    "job.failed",
    "job.cancelled",
    "pipeline.succeeded",
    "pipeline.held",
    "pipeline.failed",
    "pipeline.cancelled",
    "deployment.ready",
    "deployment.degraded",
    "deployment.recovered",
    "model.imported",
    "model.refused",
    "card.isolated",
    "card.unproved",
    "card.returned",
    "health.held_back",
    "webhook.given_up",
    "webhook.disabled",
    "test",
)
_RENAME = (
    "UPDATE notifications_event SET kind = %s WHERE kind = %s",
    "UPDATE notifications_notification SET kind = %s WHERE kind = %s",
    "UPDATE notifications_notificationpreference SET kind = %s WHERE kind = %s",
)
#: A webhook has a list of kinds.
_RENAME_IN_LIST = """
UPDATE notifications_webhook
   SET kinds = replace(kinds::text, to_jsonb(%s::text)::text, to_jsonb(%s::text)::text)::jsonb
 WHERE kinds @> to_jsonb(%s::text)
"""


class Migration(migrations.Migration):
    """A deployment that is not healthy is degraded, as its state says."""

    dependencies: ClassVar = [("notifications", "0002_webhook_error")]

    operations: ClassVar = [
        *(
            migrations.AlterField(
                model_name=model,
                name="kind",
                field=models.CharField(choices=[(kind, kind) for kind in _KINDS], max_length=40),
            )
            for model in ("event", "notification", "notificationpreference")
        ),
        *(
            migrations.RunSQL([(statement, [_NEW, _OLD])], [(statement, [_OLD, _NEW])])
            for statement in _RENAME
        ),
        migrations.RunSQL(
            [(_RENAME_IN_LIST, [_OLD, _NEW, _OLD])], [(_RENAME_IN_LIST, [_NEW, _OLD, _NEW])]
        ),
    ]
