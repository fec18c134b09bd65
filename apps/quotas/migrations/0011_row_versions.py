from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

from controlplane.persistence.row_versions import RowVersionTrigger

_ROW_VERSION = models.BigIntegerField(
    db_default=models.Func(
        models.Value("persistence_row_version"),
        function="nextval",
        output_field=models.BigIntegerField(),
    ),
    editable=False,
)


class Migration(migrations.Migration):
    """Versions of what the scheduler reads."""

    dependencies: ClassVar = [
        ("quotas", "0010_reasons_as_data"),
        ("fleet", "0006_row_versions"),
    ]

    operations: ClassVar = [
        *(
            migrations.AddField(model_name=name, name="row_version", field=_ROW_VERSION)
            for name in ("claim", "entitlement", "queue")
        ),
        RowVersionTrigger("quotas_claim"),
        RowVersionTrigger("quotas_entitlement"),
        RowVersionTrigger("quotas_queue"),
    ]
