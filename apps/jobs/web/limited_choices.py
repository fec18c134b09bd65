"""Choices of which some are out of reach: shown, not to be chosen, with the reason beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext

from controlplane.web.sentences import said


def limited_label(choice: Any, reason: str) -> str:
    """The choice with the reason for which it cannot be made."""
    return gettext("%(choice)s; not available: %(reason)s") % {
        "choice": choice,
        "reason": said(reason),
    }


def _limited(option: dict[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    """The option as Django draws it, greyed out if there is a reason; what is chosen already stays chosen."""
    reason = reasons.get(str(option["value"]))
    if not reason:
        return option
    label = limited_label(option["label"], reason)
    attributes = option["attrs"] if option["selected"] else {**option["attrs"], "disabled": True}
    return {**option, "label": label, "attrs": attributes}


class LimitedSelect(forms.Select):
    """A select box; ``reasons`` says of choices why they cannot be made."""

    reasons: Mapping[str, str] = {}

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _limited(super().create_option(*args, **kwargs), self.reasons)


class LimitedRadios(forms.RadioSelect):
    """Radio buttons; ``reasons`` says of choices why they cannot be made."""

    reasons: Mapping[str, str] = {}

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _limited(super().create_option(*args, **kwargs), self.reasons)


class LimitedChecks(forms.CheckboxSelectMultiple):
    """Check boxes; ``reasons`` says of choices why they cannot be made."""

    reasons: Mapping[str, str] = {}

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _limited(super().create_option(*args, **kwargs), self.reasons)


def limit(field: forms.Field, reasons: Mapping[str, str]) -> None:
    """Say of choices why they cannot be made.

    :raises TypeError: if the field's widget cannot show reasons.
    """
    if not isinstance(field.widget, LimitedSelect | LimitedRadios | LimitedChecks):
        raise TypeError(f"a {type(field.widget).__name__} shows no reasons; use a LimitedSelect")
    field.widget.reasons = reasons


def offer(
    field: forms.ChoiceField, choices: list[tuple[str, Any]], *, reasons: Mapping[str, str]
) -> None:
    """Let these be chosen, but for those that have a reason against them."""
    field.choices = choices
    limit(field, reasons)


def offered_of(form: forms.Form) -> dict[str, Any]:
    """What can be chosen in the form now, for a page that is open already.

    For each field with choices ``[{"value", "label", "disabled"}]``, for each other ``{"hint", "disabled"}``.
    """
    offered: dict[str, Any] = {}
    for name, field in form.fields.items():
        if isinstance(field.widget, LimitedSelect | LimitedRadios | LimitedChecks):
            offered[name] = [
                {
                    "value": str(option.data["value"]),
                    "label": str(option.data["label"]),
                    "disabled": bool(option.data["attrs"].get("disabled")),
                }
                for option in form[name].subwidgets
            ]
        elif isinstance(field, forms.IntegerField | forms.FloatField):
            offered[name] = {
                "hint": str(field.help_text),
                "disabled": bool(field.widget.attrs.get("disabled")),
            }
    return offered
