from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PatchedRolloutStrategyRequest")


@_attrs_define
class PatchedRolloutStrategyRequest:
    """How many replicas a rollout replaces at a time."""

    max_surge: int | str | Unset = UNSET
    max_unavailable: int | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        max_surge: int | str | Unset
        if isinstance(self.max_surge, Unset):
            max_surge = UNSET
        else:
            max_surge = self.max_surge

        max_unavailable: int | str | Unset
        if isinstance(self.max_unavailable, Unset):
            max_unavailable = UNSET
        else:
            max_unavailable = self.max_unavailable

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_surge is not UNSET:
            field_dict["max_surge"] = max_surge
        if max_unavailable is not UNSET:
            field_dict["max_unavailable"] = max_unavailable

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_max_surge(data: object) -> int | str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(int | str | Unset, data)

        max_surge = _parse_max_surge(d.pop("max_surge", UNSET))

        def _parse_max_unavailable(data: object) -> int | str | Unset:
            if isinstance(data, Unset):
                return data
            return cast(int | str | Unset, data)

        max_unavailable = _parse_max_unavailable(d.pop("max_unavailable", UNSET))

        patched_rollout_strategy_request = cls(
            max_surge=max_surge,
            max_unavailable=max_unavailable,
        )

        return patched_rollout_strategy_request
