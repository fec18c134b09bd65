from django.db import migrations, models


class Migration(migrations.Migration):
    """Nodes say whether they are isolated or tainted, clusters why their last inventory failed."""

    dependencies = [
        ("fleet", "0001_tables_of_0_1_0"),
    ]

    operations = [
        migrations.AddField(
            model_name="node",
            name="isolated_since",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="node",
            name="tainted",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RenameField(model_name="cluster", old_name="trouble", new_name="error"),
    ]
