"""Declaration of the fields of a queue and of its quota.

``QueueDocument`` and ``ChipQuota`` declare each field once: the annotation is its type, and ``declared`` adds
default, label, help text and range. Queue files, REST with its OpenAPI description, the forms of the admin and
the validation of a tree read the declaration, so all have the same limits and messages.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import REQUIRED, RequiredField

T = TypeVar("T")

#: Key of a ``QueueField`` in the metadata of a dataclass field.
DECLARATION: Final = "declaration"
_LONGEST_QUOTE = 60
_BOOLEAN = Reason("queue.requirement.boolean", "true or false")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueField:
    """One field of a queue or of its quota."""

    label: str
    #: What it controls, its unit, range and default.
    help: str
    #: What a value must be, as it follows "must be" in messages; ``declared_queue_fields`` sets that of a boolean.
    #: Empty for a reference to a row.
    requirement: str = ""
    least: float = 0
    #: ``least`` itself is not allowed.
    above_least: bool = False
    #: The largest number that an integer column stores.
    most: float = 2**31 - 1
    #: Most characters of a text.
    longest: int = 60
    #: Regular expression that a text matches as a whole; empty for any text.
    pattern: str = ""

    # Set by ``declared_queue_fields``.
    name: str = ""
    #: ``str``, ``bool``, ``int``, ``float`` or a ``StrEnum``.
    value_type: Any = str
    #: The allowed values of an enumeration.
    choices: tuple[str, ...] = ()
    #: None is allowed; ``help`` says what it means.
    optional: bool = False
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        return isinstance(self.default, RequiredField)

    @property
    def reference(self) -> bool:
        """Whether the value refers to a row, so that its form differs between files, REST and the admin."""
        return not self.requirement

    def error(self, value: Any, *, path: str = "") -> str | None:
        """Return why a JSON value is not valid; None if it is.

        :param path: its path in a file or a tree; empty if the field is displayed next to the message.
        """
        # Most values of a tree are defaults; a tree has thousands of them.
        if value is self.default or self.reference or self._accepts(value):
            return None
        shown = shorten_value(value)
        if path:
            return Reason(
                "queue.field.invalid_at_path",
                "{path}: {field} must be {requirement}, got {value}",
                path=path,
                field=self.name,
                requirement=self.requirement,
                value=shown,
            )
        return Reason(
            "queue.field.invalid",
            "{field} must be {requirement}, got {value}",
            field=self.name,
            requirement=self.requirement,
            value=shown,
        )

    def from_json(self, value: Any) -> Any:
        """The value of an allowed JSON value."""
        return None if value is None else self.value_type(value)

    def to_json(self, value: Any) -> Any:
        """The JSON value that ``from_json`` reads."""
        return str(value) if self.choices else value

    def _accepts(self, value: Any) -> bool:
        if value is None:
            return self.optional
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.value_type is str:
            return isinstance(value, str) and self._accepts_text(value)
        if self.value_type is bool or isinstance(value, bool):
            return self.value_type is bool and isinstance(value, bool)
        return isinstance(value, (int, float)) and self._accepts_number(value)

    def _accepts_text(self, text: str) -> bool:
        matches = not self.pattern or re.fullmatch(self.pattern, text)
        return bool(matches) and "\0" not in text and len(text) <= self.longest

    def _accepts_number(self, number: float) -> bool:
        if not self.least <= number <= self.most or (self.above_least and number == self.least):
            return False
        return self.value_type is float or number == int(number)


def queue_dataclass_field(*, default: T, **declaration: Any) -> T:
    """A dataclass field with that default, declared by a ``QueueField`` with the other arguments."""
    described: T = field(default=default, metadata={DECLARATION: QueueField(**declaration)})
    return described


def declared_queue_fields(declaring: type) -> Mapping[str, QueueField]:
    """The declared fields of a dataclass by name, in order."""
    hints = get_type_hints(declaring)
    found: dict[str, QueueField] = {}
    for each in dataclasses.fields(declaring):
        if DECLARATION in each.metadata:
            types = get_args(hints[each.name]) or (hints[each.name],)
            declaration = each.metadata[DECLARATION]
            found[each.name] = dataclasses.replace(
                declaration,
                requirement=_BOOLEAN if types[0] is bool else declaration.requirement,
                name=each.name,
                value_type=types[0],
                choices=tuple(map(str, types[0])) if issubclass(types[0], StrEnum) else (),
                optional=NoneType in types,
                default=REQUIRED if each.default is MISSING else each.default,
            )
    return found


def shorten_value(value: Any) -> str:
    """The value as written in a message, of limited length."""
    text = repr(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
