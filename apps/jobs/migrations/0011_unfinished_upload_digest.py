from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0010_unfinished_upload"),
    ]

    operations = [
        migrations.AddField(
            model_name="unfinishedupload",
            name="sha256",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
    ]
