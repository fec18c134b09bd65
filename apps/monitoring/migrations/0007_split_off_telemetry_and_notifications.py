"""Forget the models whose tables ``telemetry`` and ``notifications`` have taken over."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0001_tables_of_0_1_0"),
        ("notifications", "0001_initial"),
        ("telemetry", "0001_initial"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name=name)
                for name in (
                    "WebhookTry",
                    "WebhookDelivery",
                    "Webhook",
                    "Mail",
                    "Notification",
                    "NotificationPreference",
                    "Event",
                    "CardFigures",
                    "CardHistory",
                    "CardHour",
                    "SummedHour",
                    "NodeToken",
                    "Source",
                )
            ],
        ),
    ]
