from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0011_change_log"),
    ]

    operations = [
        migrations.AddField(
            model_name="rollout",
            name="domain_label",
            field=models.CharField(blank=True, default="", max_length=120),
        ),
        migrations.AddField(
            model_name="rollout",
            name="labels",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
