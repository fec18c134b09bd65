from django.db import migrations

from controlplane.persistence.moved_models import MoveModels

#: The partitioned table, its index and its partitions.
_RENAME_HISTORY = """
DO $$
DECLARE
    part record;
BEGIN
    ALTER TABLE {old}_history RENAME TO {new}_history;
    ALTER INDEX {old}_history_by_time RENAME TO {new}_history_by_time;
    FOR part IN
        SELECT child.relname AS name FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
         WHERE inhparent = '{new}_history'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE %I RENAME TO %I', part.name,
            replace(part.name, '{old}_history_', '{new}_history_')
        );
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    """Take over the tables of metrics from ``monitoring``."""

    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("monitoring", "0001_tables_of_0_1_0"),
        ("fleet", "0001_tables_of_0_1_0"),
    ]

    operations = [
        MoveModels(
            "cardfigures",
            "cardhistory",
            "cardhour",
            "nodetoken",
            "source",
            "summedhour",
            source="monitoring",
        ),
        migrations.RunSQL(
            _RENAME_HISTORY.format(old="monitoring", new="telemetry"),
            _RENAME_HISTORY.format(old="telemetry", new="monitoring"),
        ),
    ]
