from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.reason_params import ReasonParams


T = TypeVar("T", bound="Reason")


@_attrs_define
class Reason:
    """A reason of a state: code, parameters and English message."""

    code: str
    params: ReasonParams
    message: str

    def to_dict(self) -> dict[str, Any]:
        code = self.code

        params = self.params.to_dict()

        message = self.message

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "code": code,
                "params": params,
                "message": message,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reason_params import ReasonParams

        d = dict(src_dict)
        code = d.pop("code")

        params = ReasonParams.from_dict(d.pop("params"))

        message = d.pop("message")

        reason = cls(
            code=code,
            params=params,
            message=message,
        )

        return reason
