from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Why the last inventory of a cluster failed is its error."""

    dependencies: ClassVar = [("fleet", "0004_node_isolation")]

    operations: ClassVar = [
        migrations.RenameField(model_name="cluster", old_name="trouble", new_name="error"),
    ]
