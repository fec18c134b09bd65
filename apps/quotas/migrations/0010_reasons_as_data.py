from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0009_names"),
    ]

    operations = [
        AlterToReason("claim", "explanation"),
        AlterToReason("claimforecast", "reason"),
        AlterToReason("claimtransition", "reason"),
        AlterToReason("defragmentation", "reason"),
        AlterToReason("defragmentation", "state_reason"),
        AlterToReason("defragmentationtransition", "reason"),
        AlterToReason("movetransition", "reason"),
    ]
