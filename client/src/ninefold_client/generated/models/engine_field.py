from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.engine_field_default_type_5 import EngineFieldDefaultType5
    from ..models.engine_field_default_type_6 import EngineFieldDefaultType6


T = TypeVar("T", bound="EngineField")


@_attrs_define
class EngineField:
    """One field of an engine's spec, as its plug-in describes it."""

    name: str
    label: str
    help_: str
    kind: str
    required: bool
    default: (
        bool
        | EngineFieldDefaultType5
        | EngineFieldDefaultType6
        | float
        | int
        | list[str]
        | None
        | str
    )
    least: float | None
    most: float | None
    choices: list[str]

    def to_dict(self) -> dict[str, Any]:
        from ..models.engine_field_default_type_5 import EngineFieldDefaultType5
        from ..models.engine_field_default_type_6 import EngineFieldDefaultType6

        name = self.name

        label = self.label

        help_ = self.help_

        kind = self.kind

        required = self.required

        default: bool | dict[str, Any] | float | int | list[str] | None | str
        if isinstance(self.default, list):
            default = self.default

        elif isinstance(self.default, EngineFieldDefaultType5):
            default = self.default.to_dict()
        elif isinstance(self.default, EngineFieldDefaultType6):
            default = self.default.to_dict()
        else:
            default = self.default

        least: float | None
        least = self.least

        most: float | None
        most = self.most

        choices = self.choices

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "label": label,
                "help": help_,
                "kind": kind,
                "required": required,
                "default": default,
                "least": least,
                "most": most,
                "choices": choices,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.engine_field_default_type_5 import EngineFieldDefaultType5
        from ..models.engine_field_default_type_6 import EngineFieldDefaultType6

        d = dict(src_dict)
        name = d.pop("name")

        label = d.pop("label")

        help_ = d.pop("help")

        kind = d.pop("kind")

        required = d.pop("required")

        def _parse_default(
            data: object,
        ) -> (
            bool
            | EngineFieldDefaultType5
            | EngineFieldDefaultType6
            | float
            | int
            | list[str]
            | None
            | str
        ):
            if data is None:
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                default_type_4 = cast(list[str], data)

                return default_type_4
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                default_type_5 = EngineFieldDefaultType5.from_dict(data)

                return default_type_5
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                default_type_6 = EngineFieldDefaultType6.from_dict(data)

                return default_type_6
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(
                bool
                | EngineFieldDefaultType5
                | EngineFieldDefaultType6
                | float
                | int
                | list[str]
                | None
                | str,
                data,
            )

        default = _parse_default(d.pop("default"))

        def _parse_least(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        least = _parse_least(d.pop("least"))

        def _parse_most(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        most = _parse_most(d.pop("most"))

        choices = cast(list[str], d.pop("choices"))

        engine_field = cls(
            name=name,
            label=label,
            help_=help_,
            kind=kind,
            required=required,
            default=default,
            least=least,
            most=most,
            choices=choices,
        )

        return engine_field
