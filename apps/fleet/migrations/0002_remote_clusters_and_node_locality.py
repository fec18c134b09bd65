from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("fleet", "0002_clusters_over_the_network"), ("fleet", "0003_node_locality")]

    dependencies = [
        ("fleet", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="card",
            name="removed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="checked_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="checks",
            field=models.JSONField(
                blank=True, db_default=models.Value([], models.JSONField()), default=list
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="created_by_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
        migrations.AddField(
            model_name="cluster",
            name="kubeconfig",
            field=models.BinaryField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="reachable_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="removed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="version",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="node",
            name="removed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="locality",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
    ]
