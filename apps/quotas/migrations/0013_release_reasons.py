from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("quotas", "0012_change_log"),
    ]

    operations = [
        migrations.AlterField(
            model_name="claim",
            name="release_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("preempted", "preempted"),
                    ("fault", "fault"),
                    ("moved", "moved"),
                    ("cancelled", "cancelled"),
                    ("finished", "finished"),
                ],
                max_length=20,
            ),
        ),
    ]
