from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """The model of a call through the gateway has a name of its own; its table keeps the one it has."""

    dependencies: ClassVar = [("serving", "0001_tables_of_0_1_0")]

    operations: ClassVar = [
        migrations.RenameModel(old_name="UsageRecord", new_name="GatewayCall"),
        migrations.AlterModelTable(name="gatewaycall", table="serving_usagerecord"),
    ]
