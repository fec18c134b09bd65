from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0001_initial"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apikey",
            options={"ordering": ("-id",), "verbose_name": "API key"},
        ),
        migrations.AlterModelOptions(
            name="usagebatch",
            options={"verbose_name_plural": "usage batches"},
        ),
    ]
