from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0004_change_log"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger(
            "workflows_pipelinetransition",
            uid="ROW.id::text",
            owner="(SELECT 'team:' || pipeline.team_id FROM workflows_pipeline AS pipeline"
            " WHERE pipeline.id = ROW.entity_id)",
        ),
        ChangeLogTrigger(
            "workflows_steptransition",
            uid="ROW.id::text",
            owner="(SELECT 'team:' || pipeline.team_id FROM workflows_step AS step"
            " JOIN workflows_pipeline AS pipeline ON pipeline.id = step.pipeline_id"
            " WHERE step.id = ROW.entity_id)",
        ),
    ]
