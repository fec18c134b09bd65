from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="EgressRule")


@_attrs_define
class EgressRule:
    """Addresses that pods may reach beyond DNS, each other and the control plane."""

    cidr: str
    ports: list[int] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        cidr = self.cidr

        ports: list[int] | Unset = UNSET
        if not isinstance(self.ports, Unset):
            ports = self.ports

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "cidr": cidr,
            }
        )
        if ports is not UNSET:
            field_dict["ports"] = ports

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cidr = d.pop("cidr")

        ports = cast(list[int], d.pop("ports", UNSET))

        egress_rule = cls(
            cidr=cidr,
            ports=ports,
        )

        return egress_rule
