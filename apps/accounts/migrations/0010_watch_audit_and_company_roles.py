from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_change_log"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger(
            "accounts_auditentry",
            uid="ROW.id::text",
            # Entries without a team are for administrators of the company, who read the changes of all owners.
            owner="COALESCE('team:' || ROW.team_id, 'company')",
        ),
        # The roles of a user are part of the user.
        ChangeLogTrigger(
            "accounts_companyrolebinding",
            source="accounts_user",
            uid="(SELECT holder.uid FROM accounts_user AS holder WHERE holder.id = ROW.user_id)",
            owner="'company'",
        ),
    ]
