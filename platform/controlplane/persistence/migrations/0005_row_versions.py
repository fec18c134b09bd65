from __future__ import annotations

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """The sequence of row versions, and the function of the triggers on versioned tables."""

    dependencies: ClassVar = [("persistence", "0004_names_of_controllers")]

    operations: ClassVar = [
        migrations.RunSQL(
            """
            CREATE SEQUENCE persistence_row_version;
            CREATE FUNCTION persistence_next_row_version() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                NEW.row_version := nextval('persistence_row_version');
                RETURN NEW;
            END
            $$;
            """,
            """
            DROP FUNCTION persistence_next_row_version();
            DROP SEQUENCE persistence_row_version;
            """,
        )
    ]
