"""Forms to edit queues, derived from the declared fields of ``QueueDocument`` and ``ChipQuota``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from controlplane.domain.quotas.queue_documents import QUEUE_FIELDS, QueueDocument
from controlplane.domain.quotas.queue_fields import QueueField
from controlplane.domain.quotas.queues import QUOTA_FIELDS, TOTAL, TOTAL_NAME, ChipQuota
from controlplane.web.forms import StyledForm
from controlplane.web.reasons import render_reason
from controlplane.web.state_badges import state_badge

_translated = lazy(gettext, str)
#: A text that may be longer is edited in several lines.
_LONGEST_LINE = 200


class QueueChangeSaveForm(StyledForm):
    """Note, confirmation and tree fingerprint of a change."""

    note = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=500,
        help_text=_("Stored with the change in the history."),
    )
    confirm = forms.CharField(label=_("Confirmation"), required=False, max_length=80)
    #: Fingerprint of the tree that the user saw.
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=80)
    #: Uid of the newest change when the page was opened.
    since = forms.CharField(widget=forms.HiddenInput, required=False, max_length=32)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].widget.attrs["autocomplete"] = "off"


class QueueValueFormField(forms.Field):
    """A text or a number; empty stands for a default of 0, None or ``""``."""

    def __init__(self, declared: QueueField, **options: Any) -> None:
        self.declared = declared
        required = declared.required or bool(declared.default)
        super().__init__(required=required, widget=_value_widget(declared), **options)

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, (int, float)):
            return f"{value:.12g}" if value else ""
        return value

    def to_python(self, value: Any) -> Any:
        """:raises ValidationError: with the message of the declaration."""
        # Of a read-only field, it is the value of the document.
        entered = value.strip() if isinstance(value, str) else value
        if entered in self.empty_values:
            return None if self.required else self.declared.default
        if self.declared.value_type is not str and isinstance(entered, str):
            entered = _parse_number(entered)
        if message := self.declared.error(entered):
            raise ValidationError(render_reason(message))
        return self.declared.from_json(entered)


def _value_widget(declared: QueueField) -> forms.Widget:
    if declared.value_type is not str:
        # ``any`` keeps browsers from refusing 2.5.
        step = "1" if declared.value_type is int else "any"
        return forms.NumberInput(attrs={"min": f"{declared.least:g}", "step": step})
    if declared.longest > _LONGEST_LINE:
        return forms.Textarea(attrs={"rows": 2, "maxlength": declared.longest})
    return forms.TextInput(attrs={"maxlength": declared.longest})


def _parse_number(text: str) -> float | str:
    """The number that was entered; other text as it is."""
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def form_field_of_queue_field(declared: QueueField) -> forms.Field:
    """The form field; one for a reference gets its choices from the page."""
    shared: dict[str, Any] = {
        "label": _translated(declared.label),
        "help_text": _translated(declared.help),
    }
    if declared.reference:
        return forms.ChoiceField(required=False, **shared)
    if declared.choices:
        return forms.TypedChoiceField(
            choices=[(each, state_badge(each).label) for each in declared.choices],
            coerce=declared.value_type,
            initial=declared.default,
            **shared,
        )
    if declared.value_type is bool:
        return forms.BooleanField(required=False, initial=declared.default, **shared)
    initial = None if declared.required else declared.default
    return QueueValueFormField(declared, initial=initial, **shared)


class QueueFieldForm(StyledForm):
    """A form of declared fields."""

    declared: ClassVar[Iterable[QueueField]]
    #: A row of a table, whose header has the labels.
    row: ClassVar[bool] = False

    def __init__(self, *args: Any, fixed: Iterable[str] = (), **kwargs: Any) -> None:
        """:param fixed: names of read-only fields."""
        super().__init__(*args, **kwargs)
        for each in self.declared:
            field = self.fields[each.name] = form_field_of_queue_field(each)
            self.dress(field)
            field.disabled = each.name in fixed
            if self.row:
                field.widget.attrs["aria-label"] = f"{field.label}"
                field.help_text = ""


class QueueForm(QueueFieldForm):
    """A queue without its entitlements."""

    declared = tuple(QUEUE_FIELDS.values())

    def __init__(
        self,
        *args: Any,
        parents: Iterable[tuple[str, str]],
        teams: Iterable[tuple[str, str]],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.choice("parent").choices = parents
        self.choice("team").choices = teams

    def document(self, entitlements: Mapping[str, ChipQuota]) -> QueueDocument:
        """The document of a valid form; without a uid."""
        return QueueDocument(uid="", entitlements=entitlements, **self.cleaned_data)

    @classmethod
    def initial_values_of_job(cls, document: QueueDocument) -> dict[str, Any]:
        """The document as initial values."""
        return {name: getattr(document, name) for name in QUEUE_FIELDS}


class EntitlementForm(QueueFieldForm):
    declared = tuple(QUOTA_FIELDS.values())
    row = True

    @property
    def entitlement(self) -> ChipQuota:
        """The entitlement of a valid row."""
        return ChipQuota(**self.cleaned_data)

    def edited(self, document: QueueDocument) -> QueueDocument:
        """The document with the entitlement of a valid row."""
        entitlements = {**document.entitlements, self.initial["chip"]: self.entitlement}
        return replace(document, entitlements=entitlements)

    @classmethod
    def initial_values_of_job(cls, chip: str, configured: ChipQuota) -> dict[str, Any]:
        return {"chip": chip, **{name: getattr(configured, name) for name in QUOTA_FIELDS}}


class QueueStateAndWeightForm(QueueFieldForm):
    declared = (QUEUE_FIELDS["state"], QUEUE_FIELDS["weight"])
    row = True

    def edited(self, document: QueueDocument) -> QueueDocument:
        """The document with the values of a valid row."""
        return replace(document, **self.cleaned_data)


class EntitlementTable:
    """A row for each chip, and one for all chips together."""

    def __init__(
        self,
        configured: Mapping[str, ChipQuota],
        chips: Iterable[str],
        *,
        data: Any = None,
        fixed: bool = False,
    ) -> None:
        """:param chips: chips that have a row even without an entitlement."""
        listed = dict.fromkeys((*chips, *sorted(configured)))
        listed.pop(TOTAL, None)
        self.rows = tuple(
            EntitlementForm(
                data,
                prefix=f"cards-{chip or TOTAL_NAME}",
                initial=EntitlementForm.initial_values_of_job(
                    chip, configured.get(chip, ChipQuota())
                ),
                fixed=QUOTA_FIELDS if fixed else (),
            )
            for chip in (*listed, TOTAL)
        )

    @property
    def hints(self) -> list[tuple[str, str]]:
        """Label and help text of each column."""
        return [(gettext(each.label), gettext(each.help)) for each in QUOTA_FIELDS.values()]

    @property
    def chips(self) -> tuple[str, ...]:
        return tuple(row.initial["chip"] for row in self.rows)

    def is_valid(self) -> bool:
        # Validate every row, so that each shows its errors.
        valid = [row.is_valid() for row in self.rows]
        return all(valid)

    @property
    def entitlements(self) -> Mapping[str, ChipQuota]:
        """The entitlements of valid rows by chip."""
        return {row.initial["chip"]: row.entitlement for row in self.rows}
