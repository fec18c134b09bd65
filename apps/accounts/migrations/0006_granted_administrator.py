from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """An external identity grants the administration of the company."""

    dependencies: ClassVar = [("accounts", "0001_tables_of_0_1_0")]

    operations: ClassVar = [
        migrations.RenameField(
            model_name="externalidentity",
            old_name="made_administrator",
            new_name="granted_administrator",
        ),
    ]
