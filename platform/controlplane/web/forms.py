"""Form base classes with the product styling, and validation findings beside their fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext_lazy as _

from controlplane.domain.common.name_validation import InvalidName, is_name_field, normalize_name
from controlplane.domain.common.spec_fields import FieldFinding

Declared = TypeVar("Declared", bound=forms.Field)

_CLASSES: Mapping[type[forms.Widget], str] = {
    forms.CheckboxInput: "form-check-input",
    forms.CheckboxSelectMultiple: "form-check-input",
    forms.Select: "form-select",
}


def validate_name(text: str) -> None:
    """Validate a name; used by every name field of forms, REST and the admin.

    :raises ValidationError: naming the character that is not accepted.
    """
    try:
        normalize_name(text)
    except InvalidName as refusal:
        if not refusal.character:
            raise ValidationError(_("A name must not start or end with whitespace.")) from None
        raise ValidationError(
            _("U+%(code)s is not allowed in a name: it is invisible or a control character."),
            params={"code": f"{ord(refusal.character):04X}"},
        ) from None


def has_only_required_errors(*of: forms.Form) -> bool:
    """Return whether the only errors are empty required fields."""
    return all(
        error.code == "required"
        for form in of
        for errors in form.errors.as_data().values()
        for error in errors
    )


def submitted_data(request: HttpRequest) -> QueryDict | None:
    """The data of a form; None unless it was submitted."""
    return request.POST if request.method == "POST" else None


def row_choice_field(
    model: type[Model], label: Any, *, empty_label: Any = "", **options: Any
) -> forms.ModelChoiceField[Any]:
    """A field that names a row by its uid; the form sets the rows that it offers."""
    return forms.ModelChoiceField(
        label=label,
        queryset=model._default_manager.none(),
        to_field_name="uid",
        empty_label=empty_label or _("Select an option"),
        **options,
    )


class StyledForm(forms.Form):
    """A form with the product styling; fields named in ``more`` are collapsed."""

    more: ClassVar[tuple[str, ...]] = ()
    #: Where a finding belongs if not to the field of its own name.
    finding_fields: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            self.dress(field)
        for name, field in self.fields.items():
            if isinstance(field, forms.CharField) and is_name_field(name):
                field.validators.append(validate_name)

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # Django's hook, which its stubs leave out
        for name, value in self.cleaned_data.items():
            if isinstance(value, str) and is_name_field(name):
                self.cleaned_data[name] = normalize_name(value)

    def dress(self, field: forms.Field) -> None:
        """Apply the product styling to a field; also for fields that are added later."""
        css = next(
            (name for kind, name in _CLASSES.items() if isinstance(field.widget, kind)),
            "form-control",
        )
        field.widget.attrs.setdefault("class", css)
        if isinstance(field, forms.SlugField):
            # Users do not know what a "slug" is.
            field.error_messages["invalid"] = _("Use Latin letters, digits, - and _ only.")

    def choice(self, name: str) -> forms.ChoiceField:
        """The field of that name, to give it its choices.

        :raises TypeError: if it was not declared as one with choices.
        """
        return self._declared_field(name, forms.ChoiceField)

    def model_choice_field(self, name: str) -> forms.ModelChoiceField[Any]:
        """The field of that name, to give it the rows that it offers.

        :raises TypeError: if it was not declared as one that offers rows.
        """
        return self._declared_field(name, forms.ModelChoiceField)

    def _declared_field(self, name: str, kind: type[Declared]) -> Declared:
        field = self.fields[name]
        if not isinstance(field, kind):
            raise TypeError(
                f"{type(self).__name__}.{name} is a {type(field).__name__}; "
                f"declare it as a {kind.__name__}"
            )
        return field

    @property
    def first_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name not in self.more]

    @property
    def more_fields(self) -> list[forms.BoundField]:
        return [field for field in self.visible_fields() if field.name in self.more]

    @property
    def more_open(self) -> bool:
        """Something folded away is wrong or was filled in, so it must be seen."""
        return any(field.errors or (self.is_bound and field.data) for field in self.more_fields)

    @property
    def labelled_errors(self) -> list[tuple[str, Any, list[str]]]:
        """Name, label and messages of each invalid field; the errors of the whole form have no label."""
        return [
            (name, self.fields[name].label if name in self.fields else "", list(map(str, errors)))
            for name, errors in self.errors.items()
        ]

    def add_findings(self, findings: Iterable[FieldFinding]) -> None:
        """Add each finding to its field, or to that of its group, or to the form if there is neither."""
        for finding in findings:
            own = self.finding_fields.get(finding.field, finding.field.replace(".", "_"))
            group = finding.field.partition(".")[0]
            if name := next((each for each in (own, group) if each in self.fields), ""):
                self.add_error(name, finding.message)
            else:
                place = f"{finding.field}: " if finding.field else ""
                self.add_error(None, f"{place}{finding.message}")
