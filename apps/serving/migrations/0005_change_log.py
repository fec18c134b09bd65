from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger

_DEPLOYMENT = (
    "(SELECT {} FROM serving_backend AS backend"
    " JOIN serving_revision AS revision ON revision.id = backend.revision_id"
    " JOIN serving_deployment AS deployment ON deployment.id = revision.deployment_id"
    " WHERE backend.id = ROW.backend_id)"
)


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0004_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("serving_deployment", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger("serving_apikey", owner="'team:' || ROW.team_id"),
        # The number of ready replicas is part of a deployment.
        ChangeLogTrigger(
            "serving_replica",
            source="serving_deployment",
            uid=_DEPLOYMENT.format("deployment.uid"),
            owner=_DEPLOYMENT.format("'team:' || deployment.team_id"),
            columns=("state",),
        ),
    ]
