"""The engine's own fields in the form of a deployment; what cannot be had is greyed out, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.jobs.web.form_fields import (
    LimitedSelect,
    SpecFormField,
    disable_choices,
    flatten_fields,
    form_field,
    limit_field,
    show_default,
)
from apps.serving.selectors.engines import engine_choices, engine_limits
from controlplane.domain.accelerators import Chip
from controlplane.domain.fields import Field, at_path
from controlplane.domain.specs.serving import SERVE
from controlplane.ports import registry
from controlplane.ports.engines import ModelFacts, Task

#: Given by the deployment's own name.
_GIVEN = frozenset({"model_name"})


def _placed(fields: Sequence[Field]) -> dict[str, SpecFormField]:
    """By dotted path; every field that a person may set."""
    return {each.path: each for each in flatten_fields(fields) if each.path not in _GIVEN}


#: Of every field that some serving engine takes.
PLACED = _placed(SERVE)
#: Names of the form's fields, in the order of the table.
NAMES = tuple(each.name for each in PLACED.values())


def engine_field(*, chip: Chip | None, model: ModelFacts | None) -> forms.ChoiceField:
    """Every engine that serves, the best for the chip first; empty leaves the choice to the product."""
    field = forms.ChoiceField(label=_("Engine"), required=False, widget=LimitedSelect())
    if chip is None:
        return field
    choices = engine_choices(chip=chip, model=model)
    best = gettext("automatic: %(engine)s") % {"engine": choices[0].title}
    field.choices = [("", best), *((each.name, each.title) for each in choices)]
    disable_choices(field, {each.name: each.why_not for each in choices if each.why_not})
    return field


def drawn(*, engine: str, chip: Chip | None, model: ModelFacts | None) -> dict[str, forms.Field]:
    """A form field for each field of the spec; those that the engine does not have are greyed out."""
    adapter = registry.engine(engine)
    taken = _placed(adapter.fields(Task.SERVE))
    defaults = adapter.normalise(Task.SERVE, {})
    limits = engine_limits(engine, chip=chip, model=model) if chip else ()
    missing = gettext("%(engine)s has no such setting.") % {"engine": adapter.profile().title}
    fields = {}
    for path, placed in PLACED.items():
        made = form_field(placed.field)
        show_default(made, at_path(defaults, path))
        if path in taken:
            limit_field(made, placed, limits)
        else:
            made.disabled = True
            made.help_text = missing
        fields[placed.name] = made
    return fields
