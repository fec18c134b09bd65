from django.db import migrations

from controlplane.persistence.earlier_reasons import AlterToReason


class Migration(migrations.Migration):
    dependencies = [
        ("workflows", "0002_names_of_fields"),
    ]

    operations = [
        AlterToReason("pipeline", "state_reason"),
        AlterToReason("pipelinetransition", "reason"),
        AlterToReason("step", "gate_verdict"),
        AlterToReason("step", "state_reason"),
        AlterToReason("steptransition", "reason"),
    ]
