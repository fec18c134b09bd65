from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.object_reference import ObjectReference


T = TypeVar("T", bound="GatewayUsage")


@_attrs_define
class GatewayUsage:
    """GatewayUsage"""

    at: datetime.datetime
    key: None | ObjectReference
    team: None | ObjectReference
    route: str
    operation: str
    status: int
    outcome: str
    prompt_tokens: int | Unset = UNSET
    completion_tokens: int | Unset = UNSET
    duration_ms: float | Unset = UNSET
    first_token_ms: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        at = self.at.isoformat()

        key: dict[str, Any] | None
        if isinstance(self.key, ObjectReference):
            key = self.key.to_dict()
        else:
            key = self.key

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        route = self.route

        operation = self.operation

        status = self.status

        outcome = self.outcome

        prompt_tokens = self.prompt_tokens

        completion_tokens = self.completion_tokens

        duration_ms = self.duration_ms

        first_token_ms: float | None | Unset
        if isinstance(self.first_token_ms, Unset):
            first_token_ms = UNSET
        else:
            first_token_ms = self.first_token_ms

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
                "key": key,
                "team": team,
                "route": route,
                "operation": operation,
                "status": status,
                "outcome": outcome,
            }
        )
        if prompt_tokens is not UNSET:
            field_dict["prompt_tokens"] = prompt_tokens
        if completion_tokens is not UNSET:
            field_dict["completion_tokens"] = completion_tokens
        if duration_ms is not UNSET:
            field_dict["duration_ms"] = duration_ms
        if first_token_ms is not UNSET:
            field_dict["first_token_ms"] = first_token_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.object_reference import ObjectReference

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        def _parse_key(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                key_type_0 = ObjectReference.from_dict(data)

                return key_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        key = _parse_key(d.pop("key"))

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        route = d.pop("route")

        operation = d.pop("operation")

        status = d.pop("status")

        outcome = d.pop("outcome")

        prompt_tokens = d.pop("prompt_tokens", UNSET)

        completion_tokens = d.pop("completion_tokens", UNSET)

        duration_ms = d.pop("duration_ms", UNSET)

        def _parse_first_token_ms(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        first_token_ms = _parse_first_token_ms(d.pop("first_token_ms", UNSET))

        gateway_usage = cls(
            at=at,
            key=key,
            team=team,
            route=route,
            operation=operation,
            status=status,
            outcome=outcome,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            duration_ms=duration_ms,
            first_token_ms=first_token_ms,
        )

        return gateway_usage
