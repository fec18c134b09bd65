"""Fields of a spec as data: one table defines type, bounds, default and help text of each field.

``check_fields`` and ``with_defaults`` read it, and so do forms and API descriptions; nothing about a field is
defined twice. What an engine or a chip cannot do with a field that is valid in itself is a ``FieldLimit``:
pages disable the choice and show the reason, and a spec that asks for it is refused with the same reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Self

from controlplane.domain.common.reasons import Parameter, Reason, join_reasons

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Variables that steer the loader, the interpreter or the product itself.
_RESERVED_VARIABLE = re.compile(
    r"(NINEFOLD_|LD_|PYTHON|HF_(?!TOKEN$)|OMP_|MKL_).*"
    r"|PATH|HOME|TMPDIR|USER|LOGNAME|SHELL|IFS|ENV|BASH_ENV"
)
#: Variables by which container runtimes and libraries choose devices; chip profiles name further ones.
_DEVICE_VARIABLE = re.compile(r"NVIDIA_.*|.*_VISIBLE_(DEVICES|MODULES)")
_LONGEST_TEXT = 4096
_MOST_TEXTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFinding:
    """One thing wrong with a spec."""

    #: Dotted path of the field, for example ``learning_rate``.
    field: str
    #: What was wrong with which value, and what would be right.
    message: str


def field_finding(field: str, code: str, template: str, /, **params: Parameter) -> FieldFinding:
    """The finding with that reason as its message."""
    return FieldFinding(field=field, message=Reason(code, template, **params))


def describe_findings(findings: Iterable[FieldFinding]) -> str:
    """All findings with their fields, as one reason."""
    return join_reasons(
        Reason(
            "spec.finding.of_field", "{field}: {message}", field=each.field, message=each.message
        )
        for each in findings
    )


class FieldsRefused(Exception):
    """Fields of a request are not valid; ``findings`` has an entry for each."""

    def __init__(self, findings: Iterable[FieldFinding]) -> None:
        self.findings = tuple(findings)
        super().__init__(describe_findings(self.findings))

    @classmethod
    def of(cls, field: str, code: str, template: str, /, **params: Parameter) -> Self:
        """With one finding."""
        return cls([field_finding(field, code, template, **params)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLimit:
    """A choice that an engine or a chip does not support."""

    #: Dotted path of the field, for example ``method`` or ``parallel.pipeline``.
    field: str
    #: The unavailable choices; empty means every value except the field's default and its minimum, which
    #: request nothing.
    values: tuple[Any, ...] = ()
    #: The reason, worded to follow "not available:".
    reason: str

    @classmethod
    def of(
        cls, field: str, values: tuple[Any, ...], code: str, template: str, /, **params: Parameter
    ) -> Self:
        """The limit with that ``Reason``."""
        return cls(field=field, values=values, reason=Reason(code, template, **params))


class FieldKind(StrEnum):
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    CHOICE = "choice"
    #: Several of the choices, at least one.
    CHOICES = "choices"
    #: Non-empty strings.
    TEXTS = "texts"
    #: Environment variables by name.
    VARIABLES = "variables"
    #: A group of fields of its own.
    GROUP = "group"


class RequiredField:
    """Default of a field that is required."""


REQUIRED = RequiredField()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecField:
    name: str
    label: str
    help: str
    kind: FieldKind
    default: Any = REQUIRED
    least: float | None = None
    most: float | None = None
    #: The least value itself is not allowed.
    above_least: bool = False
    choices: tuple[str, ...] = ()
    #: Null is allowed; ``help`` says what it means.
    optional: bool = False
    fields: tuple[SpecField, ...] = ()


def _spec_field(
    name: str,
    label: str,
    help_text: str,
    *,
    kind: FieldKind,
    default: Any = REQUIRED,
    within: tuple[float | None, float | None] = (None, None),
    optional: bool = False,
    **more: Any,
) -> SpecField:
    """A field of that kind.

    :param within: the least and the most value.
    :param optional: null is allowed; so it is if the default is null.
    """
    return SpecField(
        name=name,
        label=label,
        help=help_text,
        kind=kind,
        default=default,
        least=within[0],
        most=within[1],
        optional=optional or default is None,
        **more,
    )


integer_field = partial(_spec_field, kind=FieldKind.INTEGER)
number_field = partial(_spec_field, kind=FieldKind.NUMBER)
text_field = partial(_spec_field, kind=FieldKind.TEXT)
choice_field = partial(_spec_field, kind=FieldKind.CHOICE)
choices_field = partial(_spec_field, kind=FieldKind.CHOICES)
texts_field = partial(_spec_field, kind=FieldKind.TEXTS)
variables_field = partial(_spec_field, kind=FieldKind.VARIABLES)
group_field = partial(_spec_field, kind=FieldKind.GROUP)


def check_fields(fields: Sequence[SpecField], spec: Mapping[str, Any]) -> tuple[FieldFinding, ...]:
    """Everything wrong with the spec; a field that is absent is right if it has a default."""
    return tuple(_check_group(fields, spec, prefix=""))


def with_defaults(fields: Sequence[SpecField], spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec in the table's order with every default written out."""
    complete: dict[str, Any] = {}
    for field in fields:
        value = spec.get(field.name)
        if field.kind is FieldKind.GROUP:
            complete[field.name] = with_defaults(field.fields, value or {})
        elif field.name in spec:
            complete[field.name] = _convert_number(field, value)
        elif not isinstance(field.default, RequiredField):
            complete[field.name] = field.default
    return complete


def variable_name_error(name: object, *, at: str) -> str | None:
    """Why a job may not set an environment variable of that name; None if it may."""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        return Reason(
            "spec.variable.invalid_name",
            "{field} has the invalid name {name}; use letters, digits and underscores",
            field=at,
            name=repr(name),
        )
    if _DEVICE_VARIABLE.fullmatch(name):
        return device_variable_error(name, at=at)
    if _RESERVED_VARIABLE.fullmatch(name):
        return Reason(
            "spec.variable.reserved",
            "{field} must not set {name}; it is reserved",
            field=at,
            name=name,
        )
    return None


def device_variable_error(name: str, *, at: str) -> str:
    """The message for a variable that would change which cards a job sees."""
    return Reason(
        "spec.variable.device_selection",
        "{field} must not set {name}: it selects the cards that are visible to "
        "the job, and is set from the cards allocated to the job; remove it",
        field=at,
        name=name,
    )


def check_limits(
    fields: Sequence[SpecField], spec: Mapping[str, Any], limits: Sequence[FieldLimit]
) -> tuple[FieldFinding, ...]:
    """One finding for each unavailable value of the spec.

    A field that is absent or null requests nothing, so it is never unavailable.
    """
    found = []
    for limit in limits:
        value = value_at_path(spec, limit.field)
        if value is None:
            continue
        asked = value if isinstance(value, list) else [value]
        field = _field_at(fields, limit.field)
        nothing = (None, default_at_path(fields, limit.field), field.least if field else None)
        for each in asked:
            beyond = each in limit.values if limit.values else each not in nothing
            if beyond:
                message = Reason(
                    "spec.field.value_not_supported",
                    "{field} must not be {value} here: {reason}",
                    field=limit.field,
                    value=repr(each),
                    reason=limit.reason,
                )
                found.append(FieldFinding(field=limit.field, message=message))
    return tuple(found)


def value_at_path(spec: Mapping[str, Any], path: str) -> Any:
    """``lora.rank`` → ``spec["lora"]["rank"]``; None where there is none."""
    value: Any = spec
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def set_value_at_path(spec: dict[str, Any], path: str, value: Any) -> None:
    """``lora.rank`` → ``spec["lora"]["rank"] = value``, with the groups on the way."""
    *parents, key = path.split(".")
    for parent in parents:
        spec = spec.setdefault(parent, {})
    spec[key] = value


def default_at_path(fields: Sequence[SpecField], path: str) -> Any:
    """The default of the field at that path; None where there is none."""
    name, _, rest = path.partition(".")
    field = next((each for each in fields if each.name == name), None)
    if field is None or isinstance(field.default, RequiredField):
        return default_at_path(field.fields, rest) if field and rest else None
    return default_at_path(field.fields, rest) if rest else field.default


def _field_at(fields: Sequence[SpecField], path: str) -> SpecField | None:
    name, _, rest = path.partition(".")
    field = next((each for each in fields if each.name == name), None)
    return _field_at(field.fields, rest) if field and rest else field


def fields_named(fields: Sequence[SpecField], *names: str) -> tuple[SpecField, ...]:
    """Those of the fields, in the order of the names.

    :raises KeyError: if there is none of that name.
    """
    known = {field.name: field for field in fields}
    return tuple(known[name] for name in names)


def _convert_number(field: SpecField, value: Any) -> Any:
    """An integer for a fraction is converted, so that equal specs are equal."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and field.kind is FieldKind.NUMBER else value


def _check_group(
    fields: Sequence[SpecField], spec: Mapping[str, Any], *, prefix: str
) -> Iterator[FieldFinding]:
    known = {field.name for field in fields}
    for name in spec:
        if name not in known:
            yield field_finding(
                f"{prefix}{name}",
                "spec.field.unknown",
                "unknown field {prefix}{field}; known are {fields}",
                prefix=prefix,
                field=name,
                fields=", ".join(sorted(known)),
            )
    for field in fields:
        at = prefix + field.name
        if field.name not in spec:
            if isinstance(field.default, RequiredField) and field.kind is not FieldKind.GROUP:
                yield field_finding(
                    at,
                    "spec.field.required",
                    "{field} is required: {help}",
                    field=at,
                    help=field.help,
                )
        elif field.kind is FieldKind.GROUP:
            value = spec[field.name]
            if isinstance(value, Mapping):
                yield from _check_group(field.fields, value, prefix=f"{at}.")
            elif value is not None:
                yield field_finding(
                    at,
                    "spec.field.not_an_object",
                    "{field} must be an object, got {value}",
                    field=at,
                    value=repr(value),
                )
        elif wrong := _value_error(field, spec[field.name], at=at):
            yield FieldFinding(field=at, message=wrong)


def _value_error(field: SpecField, value: Any, *, at: str) -> str | None:
    """Why the value is invalid; None if it is valid."""
    if value is None and field.optional:
        return None
    if field.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        return _number_error(field, value, at=at)
    if field.kind is FieldKind.TEXT:
        right = isinstance(value, str) and value.strip() and len(value) <= _LONGEST_TEXT
        return (
            None
            if right
            else Reason(
                "spec.field.not_a_string",
                "{field} must be a non-empty string, got {value}",
                field=at,
                value=repr(value),
            )
        )
    if field.kind is FieldKind.CHOICE:
        choices = ", ".join(field.choices)
        return (
            None
            if value in field.choices
            else Reason(
                "spec.field.not_a_choice",
                "{field} must be one of {choices}, got {value}",
                field=at,
                choices=choices,
                value=repr(value),
            )
        )
    if field.kind is FieldKind.VARIABLES:
        return _variables_error(value, at=at)
    return _list_error(field, value, at=at)


def _number_error(field: SpecField, value: Any, *, at: str) -> str | None:
    whole = field.kind is FieldKind.INTEGER
    right_type = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if right_type and math.isfinite(value) and _is_within_bounds(field, value):
        return None
    bounds = _format_bounds(field)
    if right_type:
        return Reason(
            "spec.number.out_of_range",
            "{field} must be {bounds}, got {value}",
            field=at,
            bounds=bounds,
            value=repr(value),
        )
    if whole:
        return Reason(
            "spec.number.not_an_integer",
            "{field} must be a whole number {bounds}, got {value}",
            field=at,
            bounds=bounds,
            value=repr(value),
        )
    return Reason(
        "spec.number.not_a_number",
        "{field} must be a number {bounds}, got {value}",
        field=at,
        bounds=bounds,
        value=repr(value),
    )


def _is_within_bounds(field: SpecField, value: float) -> bool:
    if field.least is not None and (
        value < field.least or (field.above_least and value == field.least)
    ):
        return False
    return field.most is None or value <= field.most


def _format_bounds(field: SpecField) -> str:
    bounds = []
    if field.least is not None:
        bounds.append(f"{'>' if field.above_least else '≥'} {_format_bound(field.least)}")
    if field.most is not None:
        bounds.append(f"≤ {_format_bound(field.most)}")
    return ", ".join(bounds)


def _format_bound(bound: float) -> str:
    """Without an exponent: 10485760 rather than 1.04858e+07."""
    return str(int(bound)) if bound == int(bound) else f"{bound:g}"


def _list_error(field: SpecField, value: Any, *, at: str) -> str | None:
    if not isinstance(value, list) or not value:
        return Reason(
            "spec.list.not_strings",
            "{field} must be a non-empty list of strings, got {value}",
            field=at,
            value=repr(value),
        )
    if len(value) > _MOST_TEXTS:
        return Reason(
            "spec.list.too_long",
            "{field} must have at most {limit} entries, got {count}",
            field=at,
            limit=_MOST_TEXTS,
            count=len(value),
        )
    for index, each in enumerate(value):
        if not isinstance(each, str) or not each or "\0" in each or len(each) > _LONGEST_TEXT:
            return Reason(
                "spec.list.item_not_a_string",
                "{field}[{index}] must be a non-empty string, got {value}",
                field=at,
                index=index,
                value=repr(each),
            )
        if field.kind is FieldKind.CHOICES and each not in field.choices:
            return Reason(
                "spec.list.item_not_a_choice",
                "{field}[{index}] must be one of {choices}, got {value}",
                field=at,
                index=index,
                choices=", ".join(field.choices),
                value=repr(each),
            )
    if field.kind is FieldKind.CHOICES and len(set(value)) < len(value):
        return Reason(
            "spec.list.duplicate_item",
            "{field} has a duplicate value in {values}",
            field=at,
            values=", ".join(value),
        )
    return None


def _variables_error(value: Any, *, at: str) -> str | None:
    if not isinstance(value, Mapping):
        return Reason(
            "spec.variables.not_strings",
            "{field} must be an object of strings, got {value}",
            field=at,
            value=repr(value),
        )
    for name, text in value.items():
        if wrong := variable_name_error(name, at=at):
            return wrong
        if not isinstance(text, str) or "\0" in text:
            return Reason(
                "spec.variable.not_a_string",
                "{field}.{name} must be a string, got {value}",
                field=at,
                name=name,
                value=repr(text),
            )
    return None
