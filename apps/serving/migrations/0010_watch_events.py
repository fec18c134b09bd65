from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0009_updating_state"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger(
            "serving_deploymenttransition",
            uid="ROW.id::text",
            owner="(SELECT 'team:' || deployment.team_id FROM serving_deployment AS deployment"
            " WHERE deployment.id = ROW.entity_id)",
        ),
        ChangeLogTrigger(
            "serving_replicatransition",
            uid="ROW.id::text",
            owner="(SELECT 'team:' || deployment.team_id FROM serving_replica AS replica"
            " JOIN serving_backend AS backend ON backend.id = replica.backend_id"
            " JOIN serving_revision AS revision ON revision.id = backend.revision_id"
            " JOIN serving_deployment AS deployment ON deployment.id = revision.deployment_id"
            " WHERE replica.id = ROW.entity_id)",
        ),
    ]
