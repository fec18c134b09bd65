from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger

_TEAM_OF_DATASET = "(SELECT 'team:' || dataset.team_id FROM registry_dataset AS dataset WHERE dataset.id = ROW.dataset_id)"


class Migration(migrations.Migration):
    dependencies = [
        ("registry", "0009_deleted_datasets_and_models"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("registry_dataset", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger(
            "registry_datasetversion",
            owner=_TEAM_OF_DATASET,
        ),
        # The versions of a dataset are part of it.
        ChangeLogTrigger(
            "registry_datasetversion",
            source="registry_dataset",
            uid="(SELECT dataset.uid FROM registry_dataset AS dataset WHERE dataset.id = ROW.dataset_id)",
            owner=_TEAM_OF_DATASET,
        ),
        ChangeLogTrigger("registry_modelline", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger(
            "registry_modelversion",
            owner="(SELECT 'team:' || line.team_id FROM registry_modelline AS line WHERE line.id = ROW.line_id)",
        ),
        ChangeLogTrigger("registry_evaluation"),
        ChangeLogTrigger("registry_artifact", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger("registry_storagerun"),
    ]
