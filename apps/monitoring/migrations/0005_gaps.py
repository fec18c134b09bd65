from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0004_history")]

    operations = [
        migrations.AddField(
            model_name="nodetoken",
            name="gaps",
            field=models.JSONField(
                blank=True, db_default=models.Value([], models.JSONField()), default=list
            ),
        ),
    ]
