"""Different values for many rows in one statement.

``bulk_update`` of Django writes a ``CASE`` with a branch for each row into each column, which takes it longer to
write than the database to execute. A join with a list of values says the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, models
from psycopg import sql


def update_each(rows: Sequence[models.Model], names: Sequence[str]) -> int:
    """Write those fields of each row, all of one model, as its object has them; says how many rows there were."""
    if not rows:
        return 0
    meta = type(rows[0])._meta
    columns = [meta.pk, *(meta.get_field(name) for name in names)]
    fields = [field for field in columns if isinstance(field, models.Field)]
    values = [
        field.get_db_prep_save(getattr(row, field.attname), connection)
        for row in rows
        for field in fields
    ]
    one = sql.SQL("({})").format(sql.SQL(", ").join(map(_typed, fields)))
    pk, *changed = (sql.Identifier(str(field.column)) for field in fields)
    statement = sql.SQL(
        "UPDATE {table} AS kept SET {changes} FROM (VALUES {values}) AS given ({columns})"
        " WHERE kept.{pk} = given.{pk}"
    ).format(
        table=sql.Identifier(meta.db_table),
        changes=sql.SQL(", ").join(
            sql.SQL("{name} = given.{name}").format(name=name) for name in changed
        ),
        values=sql.SQL(", ").join([one] * len(rows)),
        columns=sql.SQL(", ").join([pk, *changed]),
        pk=pk,
    )
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection), values)
        written: int = cursor.rowcount
    return written


def _typed(field: models.Field[object, object]) -> sql.Composable:
    """A place for a value of that field; the database does not guess types in a list of values."""
    return sql.SQL("%s::{}").format(sql.SQL(field.db_type(connection) or "text"))
