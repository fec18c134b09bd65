"""The options of an adapter, as its constructor declares them: their types, and what is wrong with given ones.

A parameter of the constructor is an option. Where it takes ``**options``, the class names the dataclass that it
reads them into as ``options_declaration``; without one, options of any name are accepted. The same declaration
describes the options in the OpenAPI document and checks them.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from controlplane.domain.common.reasons import NONE, Parameter, Reason, ReasonedValueError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_Declaration = TypeVar("_Declaration")

#: Parameters that the product passes to constructors; no options.
NOT_OPTIONS = frozenset({"installation", "kubeconfig", "outbound", "token", "clock"})
_LONGEST_VALUE = 60


class InvalidOption(ReasonedValueError):
    """An option is unknown, missing or of another type; ``option`` is its path, such as ``targets[0].url``."""

    def __init__(self, code: str, template: str, /, **params: Parameter) -> None:
        super().__init__(code, template, **params)
        self.option = str(params["option"])


@dataclass(frozen=True, kw_only=True)
class AdapterOptions:
    """What an adapter accepts."""

    #: Type and default of each option by name; ``...`` is the default of a required one.
    types: Mapping[str, tuple[Any, Any]]
    #: Whether it accepts options of any other name.
    open: bool

    @classmethod
    def none(cls) -> AdapterOptions:
        """No options at all."""
        return cls(types={}, open=False)

    def model(self, name: str) -> type[BaseModel]:
        """A model with these options as its fields."""
        types = {name: each for name, each in self.types.items() if _is_json_type(each[0])}
        return _options_model(types, name=name, is_open=self.open)

    @cached_property
    def _checked(self) -> type[BaseModel]:
        """Options whose types are checked here; none is required, as what is missing is found before."""
        types = {
            name: (declared, None)
            for name, (declared, _) in self.types.items()
            if _is_json_type(declared)
        }
        return _options_model(types, name="Options", is_open=True)

    def check(self, options: Mapping[str, Any]) -> None:
        """:raises InvalidOption: with the first option that cannot be used."""
        for name in options:
            if name not in self.types and not self.open and name not in NOT_OPTIONS:
                raise InvalidOption(
                    "adapter.option.unknown",
                    "{option} is not an option here; remove it or use one of: {options}",
                    option=name,
                    options=", ".join(sorted(self.types)) or NONE,
                )
        for name, (_, default) in self.types.items():
            if default is ... and name not in options:
                raise _missing_option(name)
        self._check_types(options)

    def _check_types(self, options: Mapping[str, Any]) -> None:
        from pydantic import ValidationError  # noqa: PLC0415

        checked = {name: options[name] for name in self._checked.model_fields if name in options}
        try:
            self._checked.model_validate_json(json.dumps(checked), strict=True)
        except ValidationError as error:
            raise _invalid_option(error) from error


def read_options(declaration: type[_Declaration], options: Mapping[str, Any]) -> _Declaration:
    """The options as an instance of the dataclass that declares them.

    :raises InvalidOption: with the first option that cannot be used.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        return TypeAdapter(declaration).validate_json(json.dumps(options), strict=True)
    except ValidationError as error:
        raise _invalid_option(error) from error


_LIST = Reason("adapter.option.list", "a list")
_OBJECT = Reason("adapter.option.object", "an object")
#: What pydantic expected, by its type of error.
_EXPECTED: Mapping[str, Reason] = {
    "bool_type": Reason("adapter.option.boolean", "true or false"),
    "dataclass_type": _OBJECT,
    "dict_type": _OBJECT,
    "float_type": Reason("adapter.option.number", "a number"),
    "int_type": Reason("adapter.option.integer", "an integer"),
    "list_type": _LIST,
    "string_type": Reason("adapter.option.string", "a string"),
    "tuple_type": _LIST,
}


def _invalid_option(error: ValidationError) -> InvalidOption:
    """The first error in words; checks of adapters raise ``ValueError`` with what they expect."""
    first = error.errors()[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    option, value = path.removeprefix("."), repr(first["input"])[:_LONGEST_VALUE]
    kind, context = first["type"], first.get("ctx", {})
    if kind == "missing":
        return _missing_option(option)
    if kind == "unexpected_keyword_argument":
        return InvalidOption(
            "adapter.option.unexpected", "{option} is not an option; remove it", option=option
        )
    expected: str | None = _EXPECTED.get(kind)
    if kind == "value_error":
        expected = context["error"].args[0]
    elif kind == "literal_error":
        values = re.split(", | or ", context["expected"])
        choices = ", ".join(value.strip("'") for value in values)
        expected = Reason("adapter.option.choice", "one of {choices}", choices=choices)
    if expected is None:
        return InvalidOption(
            "adapter.option.invalid",
            "{option} is {value}: {error}",
            option=option,
            value=value,
            error=first["msg"],
        )
    return InvalidOption(
        "adapter.option.not_expected",
        "{option} must be {expected}, got {value}",
        option=option,
        expected=expected,
        value=value,
    )


def _missing_option(option: str) -> InvalidOption:
    return InvalidOption("adapter.option.missing", "the option {option} is required", option=option)


@cache
def adapter_options(adapter: Any, *, without: frozenset[str] = NOT_OPTIONS) -> AdapterOptions:
    """The options that the class or factory ``adapter`` declares."""
    types: dict[str, tuple[Any, Any]] = {}
    is_open = False
    for constructor, declaration in _constructors(adapter):
        hints = get_type_hints(constructor, include_extras=True)
        parameters = inspect.signature(constructor).parameters.values()
        is_open = any(each.kind is each.VAR_KEYWORD for each in parameters)
        for each in parameters:
            hidden = each.name == "self" or each.name in types or each.name in without
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and not hidden:
                default = ... if each.default is each.empty else each.default
                types[each.name] = (hints.get(each.name, Any), default)
        if is_open and declaration is not None:
            is_open = False
            types |= _dataclass_types(declaration)
        if not is_open:
            break
    return AdapterOptions(types=types, open=is_open)


def _constructors(adapter: Any) -> Iterator[tuple[Any, Any]]:
    """Of a class and its bases, each with the dataclass into which it reads its other keyword arguments."""
    if not isinstance(adapter, type):
        yield adapter, None
        return
    for base in adapter.__mro__[:-1]:
        if "__init__" in vars(base):
            yield vars(base)["__init__"], vars(base).get("options_declaration")


def _dataclass_types(declaration: Any) -> dict[str, tuple[Any, Any]]:
    hints = get_type_hints(declaration, include_extras=True)
    found = {}
    for each in dataclasses.fields(declaration):
        default = each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        found[each.name] = (
            hints[each.name],
            ... if default is dataclasses.MISSING else default,
        )
    return found


def _is_json_type(declared: Any) -> bool:
    """Whether JSON can have a value of the type; objects that tests pass to adapters are not in documents."""
    from pydantic import TypeAdapter  # noqa: PLC0415
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        TypeAdapter(declared).json_schema()
    except PydanticUserError:
        return False
    return True


def _options_model(
    types: Mapping[str, tuple[Any, Any]], *, name: str, is_open: bool
) -> type[BaseModel]:
    # Imported when it is used: it takes a tenth of a second, and most processes create no adapter with options.
    from pydantic import ConfigDict, create_model  # noqa: PLC0415

    given: dict[str, Any] = dict(types)
    config = ConfigDict(extra="allow" if is_open else "forbid", arbitrary_types_allowed=True)
    return create_model(name, __config__=config, **given)
