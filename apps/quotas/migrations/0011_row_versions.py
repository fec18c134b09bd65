from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from controlplane.persistence.models import VersionedModel
from controlplane.persistence.row_versions import RowVersionTrigger

_ROW_VERSION = VersionedModel._meta.get_field("row_version")


class Migration(migrations.Migration):
    """Versions of what the scheduler reads."""

    dependencies: ClassVar = [
        ("quotas", "0010_reasons_as_data"),
        ("fleet", "0006_row_versions"),
    ]

    operations: ClassVar = [
        *(
            migrations.AddField(model_name=name, name="row_version", field=_ROW_VERSION.clone())
            for name in ("claim", "entitlement", "queue")
        ),
        RowVersionTrigger("quotas_claim"),
        RowVersionTrigger("quotas_entitlement"),
        RowVersionTrigger("quotas_queue"),
    ]
