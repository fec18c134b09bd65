from typing import Any

from django.db import migrations, models


def name_silences(apps: Any, _schema_editor: Any) -> None:
    """Name existing silences after their matchers, with a number where two of them are the same."""
    silences = apps.get_model("monitoring", "AlertSilence").objects
    given = set()
    for row in silences.order_by("id"):
        name = ", ".join(row.matchers)[:60].strip() or "silence"
        row.name = name if name not in given else f"{name} ({row.pk})"
        given.add(row.name)
        row.save(update_fields=["name"])


class Migration(migrations.Migration):
    dependencies = [
        ("monitoring", "0012_rollout_selection"),
    ]

    operations = [
        migrations.AddField(
            model_name="alertsilence",
            name="name",
            field=models.CharField(default="", max_length=80),
            preserve_default=False,
        ),
        migrations.RunPython(name_silences, migrations.RunPython.noop),
    ]
