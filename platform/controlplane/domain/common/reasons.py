"""Reasons as data: why something is pending, was refused, failed or changed its state.

A reason has a code, parameters and an English template. It is a string whose text is the English message,
so exceptions, logs and JSON show it as it is, and it keeps its code and parameters until it is stored or
rendered (as ``ErrorDetail`` of Django REST framework does). Pages render it in the reader's language; nothing
parses the text. Text of foreign origin, such as an engine's error, is a parameter or an ordinary string, and is
shown verbatim.

``python -m tests.reasons`` collects the codes of all modules for ``make check``.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

#: What JSON has: scalars, and reasons or lists of them.
Parameter: TypeAlias = "str | int | float | bool | Sequence[str] | None"

#: What :func:`reason_as_json` returns; documents of the last release have the text instead.
StoredReason: TypeAlias = "dict[str, Any] | str"

#: The code of reasons that are listed one after the other.
LIST_CODE: Final = "list"


class Reason(str):
    """A message of Ninefold's own.

    ``Reason("card.cordoned", "Cordoned by {user}.", user="ada")`` equals ``"Cordoned by ada."``.
    Combining it with other text in an f-string gives an ordinary string, which pages cannot translate: pass it
    as a parameter of another reason instead, or use :func:`join_reasons`.

    :raises KeyError: if the template has a placeholder without a parameter.
    """

    __slots__ = ("code", "params", "template")

    code: str
    template: str
    params: Mapping[str, Parameter]

    def __new__(cls, code: str, template: str, /, **params: Parameter) -> Self:
        self = super().__new__(cls, fill_template(template, params))
        self.code, self.template, self.params = code, template, params
        return self

    def __str__(self) -> Self:
        return self

    def as_json(self) -> dict[str, Any]:
        """Return ``{"code", "params"}``; a reason among the parameters is such an object too."""
        return reason_as_json(self, catalogued=lambda _code: True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.code, self.template, dict(self.params))


def fill_message(message: str, template: str, /, **params: Parameter) -> str:
    """Return the reason with that code and template, or the message itself where it has no template."""
    return Reason(message, template, **params) if template else message


class ReasonedError(Exception):
    """An error whose message is a reason.

    ``ReasonedError("node.not_found", "there is no node {node}", node=name)`` has that ``Reason`` as its message; a
    message without a template stays as it is.
    """

    def __init__(self, message: str, template: str = "", /, **params: Parameter) -> None:
        super().__init__(fill_message(message, template, **params))


class ReasonedValueError(ReasonedError, ValueError):
    """A value is not valid; the message is a reason."""


class ReasonTemplate(NamedTuple):
    """Code and template of a reason, for tables of messages whose parameters come later."""

    code: str
    template: str

    def fill(self, **params: Parameter) -> Reason:
        """Return the reason with those of the parameters that the template names."""
        names = {name for _, name, _, _ in string.Formatter().parse(self.template)}
        return Reason(
            self.code,
            self.template,
            **{name: value for name, value in params.items() if name in names},
        )


class FieldRefused(ReasonedError):
    """A request is refused; ``field`` names the invalid value, or is empty."""

    def __init__(
        self, message: str, template: str = "", /, *, field: str = "", **params: Parameter
    ) -> None:
        super().__init__(message, template, **params)
        self.field = field


def _rebuild(code: str, template: str, params: Mapping[str, Parameter]) -> Reason:
    return Reason(code, template, **params)


def reason_as_json(
    reason: str, *, catalogued: Callable[[str], bool] = lambda _code: False
) -> dict[str, Any]:
    """Return ``{"code", "params"}``, ``{"detail"}`` for text without a code, ``{}`` for no reason.

    :param catalogued: whether readers know the template of a code; otherwise it is part of the object.
    """
    if not isinstance(reason, Reason):
        return {"detail": reason} if reason else {}

    def as_json(value: Parameter) -> Any:
        if isinstance(value, Reason):
            return reason_as_json(value, catalogued=catalogued)
        if isinstance(value, str) or not isinstance(value, Sequence):
            return value
        return [as_json(part) for part in value]

    params = {name: as_json(value) for name, value in reason.params.items()}
    stored: dict[str, Any] = {"code": reason.code, "params": params}
    return stored if catalogued(reason.code) else {**stored, "template": reason.template}


def reason_from_json(
    stored: StoredReason | None,
    *,
    template_of: Callable[[str], str | None] = lambda _code: None,
) -> str:
    """Return the reason of :func:`reason_as_json`; text that was stored as such remains text.

    Parameters of an earlier version that do not fit the template are shown after the code.

    :param template_of: the template of a code; None where it is part of the object.
    """
    if not stored:
        return ""
    if isinstance(stored, str):
        return stored
    if "code" not in stored:
        return str(stored.get("detail", ""))

    def from_json(value: Any) -> Any:
        if isinstance(value, dict):
            return reason_from_json(value, template_of=template_of)
        return [str(from_json(part)) for part in value] if isinstance(value, list) else value

    code = stored["code"]
    params = {name: from_json(value) for name, value in stored.get("params", {}).items()}
    try:
        return Reason(code, str(template_of(code) or stored.get("template", code)), **params)
    except (KeyError, IndexError, ValueError):
        return f"{code}: {params}"


def fill_template(template: str, params: Mapping[str, Parameter], *, separator: str = "; ") -> str:
    """Return the template with its parameters; lists are joined by the separator."""
    if not params:
        return template
    lists = {
        name: separator.join(value)
        for name, value in params.items()
        if isinstance(value, (list, tuple))
    }
    return template.format_map({**params, **lists} if lists else params)


def join_reasons(reasons: Iterable[str]) -> str:
    """Return all of them as one reason: the only one itself, or a list."""
    parts = tuple(reasons)
    if len(parts) == 1:
        return parts[0]
    return Reason(LIST_CODE, "{reasons}", reasons=parts) if parts else ""


def truncate_reason(reason: str, length: int) -> str:
    """Cut foreign text to that many characters: the reason itself, or the texts among its parameters."""
    return _map_texts(reason, lambda text: text[:length])


def replace_in_reason(reason: str, old: str, new: str) -> str:
    """Return the reason with one text in its parameters replaced by another."""
    return _map_texts(reason, lambda text: text.replace(old, new))


def _map_texts(reason: str, change: Callable[[str], str]) -> str:
    if not isinstance(reason, Reason):
        return change(reason)
    params = {
        name: _map_texts(value, change) if isinstance(value, str) else value
        for name, value in reason.params.items()
    }
    return Reason(reason.code, reason.template, **params)


#: Parameters in place of an empty list or an unknown value.
NONE: Final = Reason("value.none", "none")
UNKNOWN: Final = Reason("value.unknown", "unknown")
