from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason_parameters import ReasonParameters


T = TypeVar("T", bound="NestedReason")


@_attrs_define
class NestedReason:
    """NestedReason"""

    code: str
    params: ReasonParameters

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        params = self.params.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "params": params,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason_parameters import ReasonParameters

        d = dict(src_dict)
        code = d.pop("code")

        params = ReasonParameters.from_dict(d.pop("params"))

        nested_reason = cls(
            code=code,
            params=params,
        )

        return nested_reason
