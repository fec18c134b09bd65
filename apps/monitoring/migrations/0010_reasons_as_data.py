from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0009_names_of_controllers"),
    ]

    operations = [
        AlterToReason("alertdelivery", "error"),
        AlterToReason("alertreceiver", "last_error"),
        AlterToReason("alertrule", "error"),
        AlterToReason("decision", "reason"),
        AlterToReason("fault", "message"),
        AlterToReason("isolation", "reason"),
        AlterToReason("isolationtransition", "reason"),
        AlterToReason("rollout", "error"),
        AlterToReason("rolloutnode", "reason"),
    ]
