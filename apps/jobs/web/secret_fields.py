"""Secret environment variables in the forms of jobs: rows of a name and a value that is never shown again.

A form has some empty rows, so it works without JavaScript; a script adds and removes rows. What was entered before
comes back as names only: a value is entered again, also where a job is cloned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.jobs.models import SecretVariable
from apps.jobs.services.secret_variables import LONGEST_VALUE, MOST_VARIABLES

#: Beside those that are filled in.
_EMPTY_ROWS = 3

Row = tuple[str, str]


class SecretVariablesWidget(forms.Widget):
    """Rows whose inputs are called ``<name>-name`` and ``<name>-value``, in the same order."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Row]:
        if not hasattr(data, "getlist"):
            return []
        names, values = data.getlist(f"{name}-name"), data.getlist(f"{name}-value")
        values += [""] * (len(names) - len(values))
        return [(key.strip(), value) for key, value in zip(names, values, strict=False)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-name" not in data

    def render(
        self, name: str, value: Any, attrs: Mapping[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        names = [key for key in _names(value) if key]
        return render_to_string(
            "jobs/secret_variables.html",
            {
                "name": name,
                "id": (attrs or {}).get("id", f"id_{name}"),
                "described_by": (attrs or {}).get("aria-describedby", ""),
                "names": [*names, *[""] * _EMPTY_ROWS],
                "most": MOST_VARIABLES,
                "longest_name": SecretVariable.LONGEST_NAME,
                "longest_value": LONGEST_VALUE,
            },
        )


class SecretVariablesField(forms.Field):
    """A mapping of names to values; messages name variables and never their values."""

    widget = SecretVariablesWidget

    def __init__(self) -> None:
        super().__init__(
            label=_("Secret variables"),
            required=False,
            help_text=_(
                "Environment variables such as HF_TOKEN. Values have at least 8 characters, are encrypted, "
                "masked in logs and never shown again."
            ),
        )

    def to_python(self, value: Iterable[Row] | None) -> dict[str, str]:
        variables: dict[str, str] = {}
        for name, secret in value or ():
            if not name and not secret:
                continue
            if not name:
                raise ValidationError(gettext("A value has no name."))
            if not secret:
                raise ValidationError(gettext("Enter the value of %(name)s.") % {"name": name})
            if name in variables:
                raise ValidationError(gettext("%(name)s comes more than once.") % {"name": name})
            variables[name] = secret
        return variables


def _names(value: Any) -> Iterable[str]:
    """Of what was filled in, or of the job that is cloned."""
    return (each if isinstance(each, str) else each[0] for each in value or ())
