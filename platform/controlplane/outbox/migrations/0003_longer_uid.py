from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="resourcechange",
            name="uid",
            field=models.CharField(max_length=60),
        ),
    ]
