from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Why the product switched a webhook off is its error."""

    dependencies: ClassVar = [("notifications", "0001_initial")]

    operations: ClassVar = [
        migrations.RenameField(model_name="webhook", old_name="trouble", new_name="error"),
    ]
