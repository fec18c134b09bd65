from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from controlplane.persistence.models import VersionedModel
from controlplane.persistence.row_versions import RowVersionTrigger

_ROW_VERSION = VersionedModel._meta.get_field("row_version")


class Migration(migrations.Migration):
    """Versions of nodes and cards. A heartbeat is no new version of a node."""

    dependencies: ClassVar = [
        ("fleet", "0005_reasons_as_data"),
        ("persistence", "0005_row_versions"),
    ]

    operations: ClassVar = [
        *(
            migrations.AddField(model_name=name, name="row_version", field=_ROW_VERSION.clone())
            for name in ("card", "node")
        ),
        RowVersionTrigger(
            "fleet_card", "node_id", "index", "chip", "state", "parent_id", "removed_at"
        ),
        RowVersionTrigger(
            "fleet_node",
            "cluster_id",
            "name",
            "cpu",
            "memory",
            "ready",
            "cordoned",
            "labels",
            "removed_at",
        ),
    ]
