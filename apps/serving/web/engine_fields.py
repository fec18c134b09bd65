"""The engine's own fields in the form of a deployment; what cannot be had is greyed out, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.jobs.web.limited_choices import LimitedSelect
from apps.serving.selectors.engines import engine_choices, engine_limits
from controlplane.domain.accelerators import Chip
from controlplane.domain.fields import Field, Kind, Limit, at_path
from controlplane.domain.specs.serving import SERVE
from controlplane.ports import registry
from controlplane.ports.engines import ModelFacts, Task
from controlplane.web.sentences import said

#: Given by the deployment's own name.
_GIVEN = frozenset({"model_name"})
_WORDS: Mapping[str, Any] = {"auto": _("automatic"), "on": _("on"), "off": _("off")}


def spec_fields() -> dict[str, Field]:
    """Dotted path in the spec → field, of every field that some serving engine takes."""
    return dict(_paths(SERVE))


def _paths(fields: Sequence[Field], prefix: str = "") -> Iterator[tuple[str, Field]]:
    for field in fields:
        if field.kind is Kind.GROUP:
            yield from _paths(field.fields, f"{prefix}{field.name}.")
        elif field.name not in _GIVEN:
            yield f"{prefix}{field.name}", field


def form_name(path: str) -> str:
    """``parallel.tensor`` → ``parallel_tensor``."""
    return path.replace(".", "_")


#: Names of the form's fields, in the order of the table.
NAMES = tuple(form_name(path) for path in spec_fields())


def engine_field(*, chip: Chip | None, model: ModelFacts | None) -> forms.ChoiceField:
    """Every engine that serves, the best for the chip first; empty leaves the choice to the product."""
    field = forms.ChoiceField(label=_("Engine"), required=False, widget=LimitedSelect())
    if chip is None:
        return field
    choices = engine_choices(chip=chip, model=model)
    best = gettext("automatic: %(engine)s") % {"engine": choices[0].title}
    field.choices = [("", best), *((each.name, each.title) for each in choices)]
    assert isinstance(field.widget, LimitedSelect)  # noqa: S101 - made so above
    field.widget.reasons = {each.name: each.why_not for each in choices if each.why_not}
    return field


def drawn(*, engine: str, chip: Chip | None, model: ModelFacts | None) -> dict[str, forms.Field]:
    """A form field for each field of the spec; those that the engine does not have are greyed out."""
    adapter = registry.engine(engine)
    taken = dict(_paths(adapter.fields(Task.SERVE)))
    defaults = adapter.normalise(Task.SERVE, {})
    limits = engine_limits(engine, chip=chip, model=model) if chip else ()
    title = adapter.profile().title
    fields = {}
    for path, field in spec_fields().items():
        made = _made(field, default=at_path(defaults, path))
        if path not in taken:
            _grey_out(made, gettext("%(engine)s has no such setting.") % {"engine": title})
        else:
            _limit(made, field, [limit for limit in limits if limit.field == path])
        fields[form_name(path)] = made
    return fields


def _made(field: Field, *, default: Any) -> forms.Field:
    label, help_text = said(field.label), said(field.help)
    if field.kind is Kind.CHOICE:
        choices = [(value, _WORDS.get(value, value)) for value in field.choices]
        return forms.ChoiceField(
            label=label,
            help_text=help_text,
            required=False,
            choices=choices,
            initial=default,
            widget=LimitedSelect(),
        )
    shown = (
        {}
        if default is None
        else {"placeholder": f"{default:g}" if field.kind in _NUMBERS else default}
    )
    if field.kind is Kind.INTEGER:
        widget: forms.Widget = forms.NumberInput(attrs=shown)
        return forms.IntegerField(label=label, help_text=help_text, required=False, widget=widget)
    if field.kind is Kind.NUMBER:
        widget = forms.NumberInput(attrs={**shown, "step": "any"})
        return forms.FloatField(label=label, help_text=help_text, required=False, widget=widget)
    return forms.CharField(
        label=label, help_text=help_text, required=False, widget=forms.TextInput(attrs=shown)
    )


_NUMBERS = (Kind.INTEGER, Kind.NUMBER)


def _limit(made: forms.Field, field: Field, limits: Sequence[Limit]) -> None:
    reasons: dict[str, str] = {}
    for limit in limits:
        values = limit.values or [each for each in field.choices if each != field.default]
        reasons |= {str(value): limit.reason for value in values}
        if not limit.values and field.kind is not Kind.CHOICE:
            _grey_out(made, gettext("Not available: %(reason)s") % {"reason": said(limit.reason)})
    if reasons and isinstance(made.widget, LimitedSelect):
        made.widget.reasons = reasons


def _grey_out(made: forms.Field, reason: str) -> None:
    made.disabled = True
    made.help_text = reason
