from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """A saved change of the queue tree has an action."""

    dependencies: ClassVar = [("quotas", "0010_defragmentation")]

    operations: ClassVar = [
        migrations.RenameField(model_name="queuechange", old_name="act", new_name="action"),
    ]
