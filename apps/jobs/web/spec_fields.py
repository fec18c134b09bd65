"""The table of a spec's fields as form fields: labels, help, ranges and choices are said once, there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.functional import Promise, lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.jobs.web.limited_choices import LimitedChecks, LimitedRadios, LimitedSelect, limited_label
from controlplane.domain.fields import Field, Kind, Limit
from controlplane.web.sentences import said

_said = lazy(said, str)
#: Words for choices that are no names; others are shown as they are written.
CHOICE_WORDS: Mapping[str, Any] = {
    "sft": _("answers: do as the rows do (SFT)"),
    "dpo": _("preferences: one answer is better than another (DPO)"),
    "grpo": _("rewards: try answers, and keep to the better ones (GRPO)"),
    "pretrain": _("plain text: read on from any word"),
    "full": _("all weights"),
    "lora": _("LoRA: small added weights"),
    "qlora": _("QLoRA: LoRA on weights of 4 bits"),
    "auto": _("automatic"),
    "on": _("on"),
    "off": _("off"),
    "cosine": _("cosine"),
    "linear": _("linear"),
    "constant": _("constant"),
    "exact_match": _("exact match"),
    "label_accuracy": _("label accuracy"),
    "killed": _("killed"),
    "hardware_error": _("hardware error"),
    "environment_error": _("environment error"),
    "user_error": _("user error"),
}
#: Drawn as radio buttons, for they are what is decided first.
_RADIOS = frozenset({"objective", "method"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedField:
    """A field with its dotted path in the spec."""

    path: str
    field: Field

    @property
    def name(self) -> str:
        """In a form: ``lora.rank`` is ``lora_rank``."""
        return self.path.replace(".", "_")


class TextsField(forms.CharField):
    """Names, separated by commas."""

    def to_python(self, value: Any) -> Any:
        text = value if isinstance(value, str) else ", ".join(value or ())
        return [each.strip() for each in text.split(",") if each.strip()]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value


def flat(fields: Sequence[Field], prefix: str = "") -> Iterator[PlacedField]:
    """Every field that is no group, in order."""
    for field in fields:
        if field.kind is Kind.GROUP:
            yield from flat(field.fields, f"{prefix}{field.name}.")
        else:
            yield PlacedField(path=prefix + field.name, field=field)


def form_field(field: Field) -> forms.Field:
    """What asks for it. Nothing is required here: what is left empty is as the engine recommends."""
    shared = {"label": _said(field.label), "help_text": _help(field), "required": False}
    if field.kind is Kind.INTEGER:
        bounds = {"min": _whole(field.least), "max": _whole(field.most)}
        attributes = {name: value for name, value in bounds.items() if value is not None}
        return forms.IntegerField(widget=forms.NumberInput(attrs=attributes), **shared)
    if field.kind is Kind.NUMBER:
        # ``any`` keeps browsers from refusing 1e-5.
        return forms.FloatField(widget=forms.NumberInput(attrs={"step": "any"}), **shared)
    choices = [(choice, CHOICE_WORDS.get(choice, choice)) for choice in field.choices]
    if field.kind is Kind.CHOICE:
        radios = LimitedRadios(attrs={"class": "form-check-input"})
        widget = radios if field.name in _RADIOS else LimitedSelect()
        return forms.ChoiceField(choices=choices, widget=widget, **shared)
    if field.kind is Kind.CHOICES:
        return forms.MultipleChoiceField(choices=choices, widget=LimitedChecks(), **shared)
    if field.kind is Kind.TEXTS:
        return TextsField(widget=forms.TextInput(attrs={"spellcheck": "false"}), **shared)
    return forms.CharField(**shared)


def show_default(field: forms.Field, value: Any) -> None:
    """What holds where the field is left as it is: chosen already, or shown in its place."""
    if isinstance(field, forms.ChoiceField):
        field.initial = value
    elif isinstance(value, int | float):
        field.widget.attrs["placeholder"] = f"{value:g}" if value.__class__ is float else value


def reasons_of(limits: Sequence[Limit], placed: PlacedField) -> dict[str, str]:
    """For each choice of the field that is out of reach, why; all of them where the limit names none."""
    reasons: dict[str, str] = {}
    for limit in limits:
        if limit.field == placed.path:
            default = placed.field.default
            beyond = limit.values or tuple(
                choice for choice in placed.field.choices if choice != default
            )
            reasons |= {str(value): limit.reason for value in beyond}
    return reasons


def limit_field(field: forms.Field, placed: PlacedField, limits: Sequence[Limit]) -> None:
    """Grey out what cannot be chosen, and say why."""
    reasons = reasons_of(limits, placed)
    if isinstance(field.widget, LimitedSelect | LimitedRadios | LimitedChecks):
        field.widget.reasons = reasons
        return
    whole = next((each for each in limits if each.field == placed.path and not each.values), None)
    if whole is not None:
        field.widget.attrs["disabled"] = True
        field.help_text = limited_label(field.help_text, whole.reason)
    elif reasons:
        reason = next(iter(reasons.values()))
        field.help_text = limited_label(
            gettext("%(help)s Not %(values)s")
            % {"help": field.help_text, "values": ", ".join(reasons)},
            reason,
        )


def _help(field: Field) -> Any:
    if field.least is None or field.most is None:
        return _said(field.help)
    words = _ABOVE if field.above_least else _WITHIN
    return _with_range(words, field.help, field.least, field.most)


_ABOVE = _("%(help)s Above %(least)s, up to %(most)s.")
_WITHIN = _("%(help)s From %(least)s to %(most)s.")


def _ranged(words: Promise, text: str, least: float, most: float) -> str:
    return str(words) % {"help": said(text), "least": f"{least:,g}", "most": f"{most:,.10g}"}


_with_range = lazy(_ranged, str)


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
