from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0012_priority_class"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        # Reports change the progress of a running attempt every few seconds.
        ChangeLogTrigger(
            "jobs_attempt",
            owner="'team:' || (SELECT job.team_id FROM jobs_job AS job WHERE job.id = ROW.job_id)",
            columns=(
                "state",
                "message",
                "claim_uid",
                "chip",
                "overrides",
                "starts_after",
                "stop_reason",
                "exit_code",
                "exit_cause",
                "log_tail",
                "admitted_at",
                "started_at",
                "ended_at",
            ),
        ),
        ChangeLogTrigger(
            "jobs_jobtransition",
            uid="ROW.id::text",
            owner="'team:' || (SELECT job.team_id FROM jobs_job AS job WHERE job.id = ROW.entity_id)",
        ),
    ]
