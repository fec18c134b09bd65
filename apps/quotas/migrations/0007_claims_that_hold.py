from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0006_cycle_phases"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("state__in", ("admitted", "revoking"))),
                fields=["id"],
                name="claim_holding",
            ),
        ),
    ]
