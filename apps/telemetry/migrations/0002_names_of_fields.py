from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Sources say why their last reading failed and which of their parts were unreachable."""

    dependencies: ClassVar = [("telemetry", "0001_initial")]

    operations: ClassVar = [
        migrations.RenameField(model_name="source", old_name="trouble", new_name="error"),
        migrations.RenameField(model_name="source", old_name="silent", new_name="unreachable"),
    ]
