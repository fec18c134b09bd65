from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0003_gateway_call"),
    ]

    operations = [
        AlterToReason("deployment", "state_reason"),
        AlterToReason("deploymenttransition", "reason"),
        AlterToReason("replica", "message"),
        AlterToReason("replicatransition", "reason"),
    ]
