"""Everything that the database keeps as text."""

from __future__ import annotations

from django.db import connection


def database_texts() -> str:
    """Every column of every table that can hold text, as one text; bytes are escaped and ASCII stays as it is."""
    kinds = "('text', 'character varying', 'jsonb', 'json', 'bytea', 'ARRAY')"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            f"WHERE table_schema = 'public' AND data_type IN {kinds}"
        )
        columns = cursor.fetchall()
        found = []
        for table, column, kind in columns:
            shown = f"encode(\"{column}\", 'escape')" if kind == "bytea" else f'"{column}"::text'
            cursor.execute(f'SELECT {shown} FROM "{table}" WHERE "{column}" IS NOT NULL')
            found += [row[0] for row in cursor.fetchall()]
    assert len(columns) > 100
    return "\n".join(found)
