from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("fleet", "0002_clusters_over_the_network"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="locality",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
    ]
