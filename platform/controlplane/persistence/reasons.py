"""Storage of reasons: code and parameters as JSON, and the message templates of each language."""

from __future__ import annotations

import gettext
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.fields.json import KeyTransform

from controlplane.domain.common import reasons
from controlplane.domain.common.reasons import Reason, StoredReason

#: Gettext domain of the templates; their message ids are the codes.
DOMAIN = "reasons"
ENGLISH = "en"


def reason_template(code: str, *, locale: str) -> str | None:
    """Return the template of a code in a language; None if the language has none."""
    template = _catalog(locale).gettext(code)
    return None if template == code else template


@cache
def _catalog(locale: str) -> gettext.NullTranslations:
    path = Path(settings.LOCALE_PATHS[0])
    return gettext.translation(DOMAIN, path, languages=[locale], fallback=True)


def reason_as_json(reason: str) -> dict[str, Any]:
    """Return the reason as columns and messages have it; a plug-in's template is stored with it."""
    return reasons.reason_as_json(reason, catalogued=_is_catalogued)


def reason_from_json(stored: StoredReason | None) -> str:
    """Return the reason of :func:`reason_as_json`."""
    return reasons.reason_from_json(stored, template_of=_english_template)


def _english_template(code: str) -> str | None:
    return reason_template(code, locale=ENGLISH)


def _is_catalogued(code: str) -> bool:
    return _english_template(code) is not None


def with_reasons_as_json(document: Any) -> Any:
    """Return a JSON document, such as the payload of a message, with its reasons as JSON."""
    if isinstance(document, Reason):
        return reason_as_json(document)
    if isinstance(document, Mapping):
        return {name: with_reasons_as_json(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [with_reasons_as_json(value) for value in document]
    return document


class ReasonField(models.JSONField):
    """A column with a reason; ordinary text is stored as its detail, and no reason is the empty string.

    Rows are found by code with ``state_reason__code="job.cancelled"``.
    """

    _pyi_private_set_type: str
    _pyi_private_get_type: str

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"blank": True, "default": str, **options})

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        stored = super().from_db_value(value, expression, connection)
        return stored if isinstance(expression, KeyTransform) else reason_from_json(stored)

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(reason_as_json(value) if isinstance(value, str) else value)

    def get_transform(self, lookup_name: str) -> Any:
        # What is compared with a key is a JSON value, not a reason.
        key = super().get_transform(lookup_name)
        return partial(key, output_field=models.JSONField())

    def value_to_string(self, obj: models.Model) -> Any:
        return reason_as_json(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return reason_from_json(value)


class ReasonsField(models.JSONField):
    """A column with a list of reasons, or with reasons by name; ordinary text is stored as it is."""

    _pyi_private_set_type: list[str] | dict[str, str]
    _pyi_private_get_type: Any

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        stored = super().from_db_value(value, expression, connection)
        return stored if isinstance(expression, KeyTransform) else _reasons_from_json(stored)

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(with_reasons_as_json(value))

    def value_to_string(self, obj: models.Model) -> Any:
        return with_reasons_as_json(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return _reasons_from_json(value)


def _reasons_from_json(stored: Any) -> Any:
    if isinstance(stored, dict):
        return {name: reason_from_json(reason) for name, reason in stored.items()}
    return [reason_from_json(reason) for reason in stored] if isinstance(stored, list) else stored
