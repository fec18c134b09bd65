from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0005_gaps"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="webhookdelivery",
            options={"ordering": ("-id",), "verbose_name_plural": "webhook deliveries"},
        ),
    ]
