from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AgentReport")


@_attrs_define
class AgentReport:
    """What an agent said of itself with its newest batch."""

    name: str | Unset = UNSET
    vendor: str | Unset = UNSET
    reader_ok: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        vendor = self.vendor

        reader_ok: bool | None | Unset
        if isinstance(self.reader_ok, Unset):
            reader_ok = UNSET
        else:
            reader_ok = self.reader_ok

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if vendor is not UNSET:
            field_dict["vendor"] = vendor
        if reader_ok is not UNSET:
            field_dict["reader_ok"] = reader_ok

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name", UNSET)

        vendor = d.pop("vendor", UNSET)

        def _parse_reader_ok(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        reader_ok = _parse_reader_ok(d.pop("reader_ok", UNSET))

        agent_report = cls(
            name=name,
            vendor=vendor,
            reader_ok=reader_ok,
        )

        return agent_report
