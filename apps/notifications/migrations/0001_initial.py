from django.db import migrations

from controlplane.persistence.moved_models import MoveModels


class Migration(migrations.Migration):
    """Take over the tables of notifications from ``monitoring``."""

    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("monitoring", "0001_tables_of_0_1_0"),
        ("accounts", "0005_company_roles"),
    ]

    operations = [
        MoveModels(
            "event",
            "mail",
            "notification",
            "notificationpreference",
            "webhook",
            "webhookdelivery",
            "webhooktry",
            source="monitoring",
        ),
    ]
