from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="EngineField")


@_attrs_define
class EngineField:
    """One field of an engine's spec, as its plug-in describes it."""

    name: str
    label: str
    help_: str
    kind: str
    required: bool
    default: Any
    least: float | None
    most: float | None
    choices: list[str]

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        label = self.label

        help_ = self.help_

        kind = self.kind

        required = self.required

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
        d = dict(src_dict)
        name = d.pop("name")

        label = d.pop("label")

        help_ = d.pop("help")

        kind = d.pop("kind")

        required = d.pop("required")

        default = d.pop("default")

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
