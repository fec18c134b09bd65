"""Form fields of workloads: fields of an engine's spec, disabled choices, priorities, secret variables.

Labels, help, ranges and choices come from the table of the spec's fields. Secret variables have some empty rows,
so that the form works without JavaScript; a script adds and removes rows. Their values are never shown again: the
form of a cloned job contains only the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.functional import Promise, lazy
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.jobs.models import SecretVariable
from apps.jobs.services.secret_variables import MAX_VALUE_LENGTH, MAX_VARIABLES
from apps.quotas import selectors as quotas
from apps.quotas.models import PriorityClass
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.spec_fields import FieldKind, FieldLimit, SpecField
from controlplane.domain.datasets.splits import Split
from controlplane.web.reasons import render_reason


def disabled_choice_label(choice: Any, reason: str) -> str:
    """The label of a disabled choice, with the reason."""
    return gettext("%(choice)s; not available: %(reason)s") % {
        "choice": choice,
        "reason": render_reason(reason),
    }


class _DisabledChoices(forms.widgets.ChoiceWidget):
    """Disables the choices that have one of the ``reasons``, unless they are selected."""

    reasons: Mapping[str, str] = {}

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(*args, **kwargs)
        reason = self.reasons.get(str(option["value"]))
        if not reason:
            return option
        label = disabled_choice_label(option["label"], reason)
        attributes = (
            option["attrs"] if option["selected"] else {**option["attrs"], "disabled": True}
        )
        return {**option, "label": label, "attrs": attributes}


class SelectWithDisabledChoices(_DisabledChoices, forms.Select):
    """A select box; ``reasons`` are those of disabled choices."""


class RadiosWithDisabledChoices(_DisabledChoices, forms.RadioSelect):
    """Radio buttons; ``reasons`` are those of disabled choices."""


class CheckboxesWithDisabledChoices(_DisabledChoices, forms.CheckboxSelectMultiple):
    """Check boxes; ``reasons`` are those of disabled choices."""


def disable_choices(field: forms.Field, reasons: Mapping[str, str]) -> None:
    """Disable choices, each with its reason.

    :raises TypeError: if the field's widget cannot show reasons.
    """
    if not isinstance(field.widget, _DisabledChoices):
        raise TypeError(
            f"a {type(field.widget).__name__} shows no reasons; use a SelectWithDisabledChoices"
        )
    field.widget.reasons = reasons


def set_choices(
    field: forms.ChoiceField, choices: list[tuple[str, Any]], *, reasons: Mapping[str, str]
) -> None:
    """Set the choices, and disable those that have a reason."""
    field.choices = choices
    disable_choices(field, reasons)


def form_choice_states(form: forms.Form) -> dict[str, Any]:
    """The choices of the form, to update an open page.

    :return: ``[{"value", "label", "disabled"}]`` for fields with choices, ``{"hint", "disabled"}`` for numbers.
    """
    offered: dict[str, Any] = {}
    for name, field in form.fields.items():
        if isinstance(field.widget, _DisabledChoices):
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


#: Labels of the priority classes of a new installation; other names are shown as they are.
_KNOWN: Mapping[str, Promise] = {
    "urgent": pgettext_lazy("priority", "urgent"),
    "high": pgettext_lazy("priority", "high"),
    "normal": pgettext_lazy("priority", "normal"),
    "low": pgettext_lazy("priority", "low"),
}
_MEANT: Mapping[str, Promise] = {
    "Workloads start ahead of all others in the queue.": _(
        "Workloads start ahead of all others in the queue."
    ),
    "Workloads start ahead of those of normal priority.": _(
        "Workloads start ahead of those of normal priority."
    ),
    "Default.": _("Default priority."),
    "Workloads start last and are preempted first.": _(
        "Workloads start last and are preempted first."
    ),
}


class PriorityField(forms.TypedChoiceField):
    """A priority class by its value; a value without a class stays selectable if it is the current one."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Priority"),
            required=False,
            coerce=int,
            empty_value=None,
            widget=SelectWithDisabledChoices,
        )

    def offer(self, *, user: User, chosen: str) -> None:
        """Set the choices.

        :param user: values above 0 require the permission to manage queues in some team; submission checks the
            job's own team.
        :param chosen: the current value of the form, valid or not.
        """
        classes = quotas.priority_classes()
        choices = [(str(row.value), _priority_label(row)) for row in classes]
        if chosen and chosen not in dict(choices) and _is_number(chosen):
            choices.append((chosen, chosen))
        self.choices = sorted(choices, key=lambda choice: -int(choice[0]))
        if not accounts.teams_with_permission(user, Permission.MANAGE_QUEUES).exists():
            reason = gettext("for queue admins of the team")
            disable_choices(self, {str(row.value): reason for row in classes if row.value > 0})


def _priority_label(row: PriorityClass) -> str:
    name = _KNOWN.get(row.name, row.name)
    meaning = _MEANT.get(row.description, row.description)
    if not meaning:
        return gettext("%(name)s (%(value)s)") % {"name": name, "value": row.value}
    return gettext("%(name)s (%(value)s): %(meaning)s") % {
        "name": name,
        "value": row.value,
        "meaning": meaning,
    }


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii() and len(text) <= len(str(-(2**30)))


#: Empty rows after the filled ones.
_EMPTY_ROWS = 3

SecretRow = tuple[str, str]


class SecretVariablesWidget(forms.Widget):
    """Rows whose inputs are called ``<name>-name`` and ``<name>-value``, in the same order."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[SecretRow]:
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
        names = [key for key in _variable_names(value) if key]
        return render_to_string(
            "jobs/secret_variables.html",
            {
                "name": name,
                "id": (attrs or {}).get("id", f"id_{name}"),
                "described_by": (attrs or {}).get("aria-describedby", ""),
                "names": [*names, *[""] * _EMPTY_ROWS],
                "most": MAX_VARIABLES,
                "longest_name": SecretVariable.MAX_NAME_LENGTH,
                "longest_value": MAX_VALUE_LENGTH,
            },
        )


class SecretVariablesField(forms.Field):
    """A mapping of names to values; messages contain names only, never values."""

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

    def to_python(self, value: Iterable[SecretRow] | None) -> dict[str, str]:
        variables: dict[str, str] = {}
        for name, secret in value or ():
            if not name and not secret:
                continue
            if not name:
                raise ValidationError(gettext("A value has no name. Enter a variable name."))
            if not secret:
                raise ValidationError(gettext("Enter the value of %(name)s.") % {"name": name})
            if name in variables:
                raise ValidationError(gettext("Variable %(name)s is duplicated.") % {"name": name})
            variables[name] = secret
        return variables


def _variable_names(value: Any) -> Iterable[str]:
    """Names of the entered variables, or of those of the cloned job."""
    return (each if isinstance(each, str) else each[0] for each in value or ())


#: Labels of choices; others are shown as they are.
CHOICE_LABELS: Mapping[str, Any] = {
    "sft": _("Supervised fine-tuning (SFT)"),
    "dpo": _("Direct preference optimization (DPO)"),
    "grpo": _("Group relative policy optimization (GRPO)"),
    "pretrain": _("Continued pre-training"),
    "full": _("Full fine-tuning"),
    "lora": _("LoRA"),
    "qlora": _("QLoRA (LoRA on 4-bit weights)"),
    "auto": _("automatic"),
    "on": _("on"),
    "off": _("off"),
    "w8a8-smoothquant": _("8-bit weights and activations (SmoothQuant): half the size"),
    "w4a16-awq": _("4-bit weights (AWQ): a quarter of the size"),
    "fp8-dynamic": _("8-bit floats (FP8): half the size, no calibration"),
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
METRIC_LABELS: Mapping[str, Promise] = {
    "exact_match": _("exact match: share of answers that equal the expected answer"),
    "label_accuracy": _("label accuracy: share of correct labels"),
    "perplexity": _("perplexity of the expected answers; lower is better"),
}
SPLIT_CHOICES = [(split.value, split.value) for split in Split]
#: Shown as radio buttons, because other fields depend on them.
_RADIOS = frozenset({"objective", "method", "scheme"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFormField:
    """A field with its dotted path in the spec."""

    path: str
    field: SpecField

    @property
    def name(self) -> str:
        """Name of the form field: ``lora_rank`` for ``lora.rank``."""
        return self.path.replace(".", "_")

    @property
    def has_meaning_if_empty(self) -> bool:
        """Whether empty is a value of its own, such as no limit, so that the form contains the default."""
        return self.field.optional and self.field.default is not None


class CommaSeparatedField(forms.CharField):
    """Names, separated by commas."""

    def to_python(self, value: Any) -> Any:
        text = value if isinstance(value, str) else ", ".join(value or ())
        return [each.strip() for each in text.split(",") if each.strip()]

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value


def flatten_fields(fields: Sequence[SpecField], prefix: str = "") -> Iterator[SpecFormField]:
    """All fields that are not groups, in order."""
    for field in fields:
        if field.kind is FieldKind.GROUP:
            yield from flatten_fields(field.fields, f"{prefix}{field.name}.")
        else:
            yield SpecFormField(path=prefix + field.name, field=field)


def form_field_of_spec_field(field: SpecField) -> forms.Field:
    """The form field. None is required: empty fields have the engine's recommendation."""
    shared = {"label": _(field.label), "help_text": _help_text(field), "required": False}
    if field.kind is FieldKind.INTEGER:
        bounds = {"min": _whole_bound(field.least), "max": _whole_bound(field.most)}
        attributes = {name: value for name, value in bounds.items() if value is not None}
        return forms.IntegerField(widget=forms.NumberInput(attrs=attributes), **shared)
    if field.kind is FieldKind.NUMBER:
        # ``any`` keeps browsers from refusing 1e-5.
        return forms.FloatField(widget=forms.NumberInput(attrs={"step": "any"}), **shared)
    labels = METRIC_LABELS if field.name == "metrics" else CHOICE_LABELS
    choices = [(choice, labels.get(choice, choice)) for choice in field.choices]
    is_split = field.name.endswith("split") and not field.optional
    if field.kind is FieldKind.CHOICE or is_split:
        radios = RadiosWithDisabledChoices(attrs={"class": "form-check-input"})
        widget = radios if field.name in _RADIOS else SelectWithDisabledChoices()
        return forms.ChoiceField(choices=choices or SPLIT_CHOICES, widget=widget, **shared)
    if field.kind is FieldKind.CHOICES:
        return forms.MultipleChoiceField(
            choices=choices, widget=CheckboxesWithDisabledChoices(), **shared
        )
    if field.kind is FieldKind.TEXTS:
        return CommaSeparatedField(widget=forms.TextInput(attrs={"spellcheck": "false"}), **shared)
    return forms.CharField(**shared)


def show_default(field: forms.Field, value: Any) -> None:
    """Show the default: as the selected choice, or as the placeholder of a number or of names."""
    if isinstance(field, forms.ChoiceField):
        field.initial = value
    elif isinstance(field, CommaSeparatedField) and value:
        field.widget.attrs["placeholder"] = field.prepare_value(value)
    elif isinstance(value, int | float):
        field.widget.attrs["placeholder"] = f"{value:g}" if value.__class__ is float else value


def unavailable_choice_reasons(
    limits: Sequence[FieldLimit], spec_field: SpecFormField
) -> dict[str, str]:
    """Reasons by unavailable choice; a limit without values applies to all but the default."""
    reasons: dict[str, str] = {}
    for limit in limits:
        if limit.field == spec_field.path:
            default = spec_field.field.default
            beyond = limit.values or tuple(
                choice for choice in spec_field.field.choices if choice != default
            )
            reasons |= {str(value): limit.reason for value in beyond}
    return reasons


def apply_field_limits(
    field: forms.Field, spec_field: SpecFormField, limits: Sequence[FieldLimit]
) -> None:
    """Disable choices or the whole field by its limits, with the reasons."""
    reasons = unavailable_choice_reasons(limits, spec_field)
    if isinstance(field.widget, _DisabledChoices):
        field.widget.reasons = reasons
        return
    whole = next(
        (each for each in limits if each.field == spec_field.path and not each.values), None
    )
    if whole is not None:
        field.widget.attrs["disabled"] = True
        field.help_text = disabled_choice_label(field.help_text, whole.reason)
    elif reasons:
        reason = next(iter(reasons.values()))
        field.help_text = disabled_choice_label(
            gettext("%(help)s Not allowed: %(values)s")
            % {"help": field.help_text, "values": ", ".join(reasons)},
            reason,
        )


def _help_text(field: SpecField) -> Any:
    if field.least is None or field.most is None:
        return _(field.help)
    template = _ABOVE if field.above_least else _WITHIN
    return _with_range(template, field.help, field.least, field.most)


_ABOVE = _("%(help)s Above %(least)s, up to %(most)s.")
_WITHIN = _("%(help)s From %(least)s to %(most)s.")


def _help_text_with_range(template: Promise, text: str, least: float, most: float) -> str:
    return str(template) % {
        "help": gettext(text),
        "least": f"{least:,g}",
        "most": f"{most:,.10g}",
    }


_with_range = lazy(_help_text_with_range, str)


def _whole_bound(bound: float | None) -> int | None:
    return None if bound is None else int(bound)
