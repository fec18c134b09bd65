"""Insert or update many rows with different values in one statement.

Django's ``bulk_update`` writes a ``CASE`` with a branch per row into each column, which takes longer to
build than the database takes to execute it, and ``bulk_create`` writes each value separately. Here all rows
are one JSON document that the database reads as a table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from operator import attrgetter
from typing import TypeAlias

from django.db import connection, models
from django.db.models.expressions import DatabaseDefault
from psycopg import sql
from psycopg.types.json import Json, Jsonb

from controlplane.persistence.transactions import execute, fetch_rows

Field: TypeAlias = "models.Field[object, object]"

#: Fields that write such values as they are; what is derived from them may do something else.
_PLAIN_FIELDS = frozenset(
    {
        models.CharField,
        models.TextField,
        models.SmallIntegerField,
        models.IntegerField,
        models.BigIntegerField,
        models.PositiveSmallIntegerField,
        models.PositiveIntegerField,
        models.BooleanField,
        models.BigAutoField,
        models.ForeignKey,
    }
)
_PLAIN_TYPES = frozenset({str, int, bool, type(None)})


def bulk_update_rows(rows: Sequence[models.Model], names: Sequence[str]) -> int:
    """Update those fields of each row, all of one model, from its object; return the number of rows."""
    if not rows:
        return 0
    meta = type(rows[0])._meta
    fields = _concrete_fields([meta.pk, *(meta.get_field(name) for name in names)])
    pk, *changed = (sql.Identifier(str(field.column)) for field in fields)
    statement = sql.SQL(
        "UPDATE {table} AS kept SET {changes} FROM json_to_recordset(%s::json) AS given ({columns})"
        " WHERE kept.{pk} = given.{pk}"
    ).format(
        table=sql.Identifier(meta.db_table),
        changes=sql.SQL(", ").join(
            sql.SQL("{name} = given.{name}").format(name=name) for name in changed
        ),
        columns=_typed_columns(fields),
        pk=pk,
    )
    return execute(statement, [_rows_as_json(rows, fields, add=False)])


def bulk_insert_rows(rows: Sequence[models.Model], *, numbered: bool = False) -> int:
    """Insert rows, all of one model; return their number.

    Database defaults that the first row uses are used for all.

    :param numbered: set the primary keys on the objects.
    """
    if not rows:
        return 0
    meta = type(rows[0])._meta
    fields = _concrete_fields(
        [
            field
            for field in meta.concrete_fields
            if not field.primary_key
            and not isinstance(getattr(rows[0], field.attname), DatabaseDefault)
        ]
    )
    columns = sql.SQL(", ").join(sql.Identifier(str(field.column)) for field in fields)
    # Numbered in the order in which they are given.
    statement = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {columns}"
        " FROM ROWS FROM (json_to_recordset(%s::json) AS ({typed})) WITH ORDINALITY"
        " AS given ({columns}, the_order) ORDER BY the_order"
    ).format(table=sql.Identifier(meta.db_table), columns=columns, typed=_typed_columns(fields))
    document = _rows_as_json(rows, fields, add=True)
    if not numbered:
        return execute(statement, [document])
    pk = sql.Identifier(str(meta.pk.column))
    returning = sql.SQL("{statement} RETURNING {pk}").format(statement=statement, pk=pk)
    keys = [key for (key,) in fetch_rows(returning, [document])]
    # Returned in the order of the insert.
    for row, key in zip(rows, keys, strict=True):
        row.pk = key
        row._state.adding, row._state.db = False, connection.alias
    return len(keys)


def _rows_as_json(rows: Sequence[models.Model], fields: Sequence[Field], *, add: bool) -> str:
    """The rows, as the database reads them."""
    names = [str(field.column) for field in fields]
    columns = [_column_values(rows, field, add=add) for field in fields]
    written = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return json.dumps(written, default=_json_value)


def _column_values(rows: Sequence[models.Model], field: Field, *, add: bool) -> list[object]:
    """What the field has for each row; what is the same for all of them is prepared once."""
    # Most fields know of nothing but what the row has.
    if add and type(field).pre_save is not models.Field.pre_save:
        values = [field.pre_save(row, add) for row in rows]
    else:
        values = list(map(attrgetter(field.attname), rows))
    if type(field) in _PLAIN_FIELDS and all(type(value) in _PLAIN_TYPES for value in values):
        return values
    first = values[0]
    if all(value is first for value in values):
        return [field.get_db_prep_save(first, connection)] * len(values)
    return [field.get_db_prep_save(value, connection) for value in values]


def _json_value(value: object) -> object:
    """:raises TypeError: for a value that the database would not read from JSON."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Json | Jsonb):
        return value.obj
    raise TypeError(f"a {type(value).__name__} cannot be written in bulk: {value!r}")


def _concrete_fields(fields: Sequence[object]) -> list[Field]:
    return [field for field in fields if isinstance(field, models.Field)]


def _typed_columns(fields: Sequence[Field]) -> sql.Composed:
    """Columns with their types, as the database does not guess them."""
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(
            sql.Identifier(str(field.column)), sql.SQL(field.db_type(connection) or "text")
        )
        for field in fields
    )
