from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Artifacts say who created them, imports from a hub their last error."""

    dependencies: ClassVar = [("registry", "0001_tables_of_0_1_0")]

    operations: ClassVar = [
        migrations.RenameField(model_name="artifact", old_name="made_by", new_name="created_by"),
        migrations.RenameField(model_name="hubimport", old_name="trouble", new_name="error"),
    ]
