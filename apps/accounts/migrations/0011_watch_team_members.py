from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0010_watch_audit_and_company_roles"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        # The roles of a member are part of the user.
        ChangeLogTrigger(
            "accounts_membership",
            source="accounts_user",
            uid="(SELECT member.uid FROM accounts_user AS member WHERE member.id = ROW.user_id)",
            owner="'team:' || ROW.team_id",
        ),
    ]
