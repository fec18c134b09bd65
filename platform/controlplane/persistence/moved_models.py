"""A migration operation that moves models with their tables to another app."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import Field


class MoveModels(Operation):
    """Take over models from another app, which deletes them from its state in a later migration.

    Tables are renamed, and content types follow, so that permissions and entries of the admin log stay with their
    models. Indexes, constraints and sequences keep their names.
    """

    def __init__(self, *names: str, source: str) -> None:
        """:param names: lower-case names of the models."""
        self.names = names
        self.source = source

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        for name in self.names:
            model = state.models[self.source, name]
            options = dict(model.options)
            if "db_table" in options:
                options["db_table"] = options["db_table"].replace(self.source, app_label, 1)
            fields = [(name, self._moved(field, app_label)) for name, field in model.fields.items()]
            state.add_model(ModelState(app_label, model.name, fields, options, model.bases))

    def _moved(self, field: Field[Any, Any], app_label: str) -> Field[Any, Any]:
        """A copy of the field that refers to the moved model instead of its source."""
        _, _, args, kwargs = field.deconstruct()
        app, _, name = str(kwargs.get("to", "")).partition(".")
        if app == self.source and name in self.names:
            kwargs["to"] = f"{app_label}.{name}"
        return type(field)(*args, **kwargs)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        del from_state
        self._rename(schema_editor, to_state, before=self.source, after=app_label)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        del from_state
        self._rename(schema_editor, to_state, before=app_label, after=self.source)

    def _rename(
        self,
        schema_editor: BaseDatabaseSchemaEditor,
        state: ProjectState,
        *,
        before: str,
        after: str,
    ) -> None:
        for name in self.names:
            # Django has created no table of an unmanaged model.
            if state.models[self.source, name].options.get("managed", True):
                schema_editor.execute(f"ALTER TABLE {before}_{name} RENAME TO {after}_{name}")
            schema_editor.execute(
                "UPDATE django_content_type SET app_label = %s WHERE app_label = %s AND model = %s",
                [after, before, name],
            )
