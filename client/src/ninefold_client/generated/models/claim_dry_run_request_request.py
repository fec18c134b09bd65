from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ClaimDryRunRequestRequest")


@_attrs_define
class ClaimDryRunRequestRequest:
    """ClaimDryRunRequestRequest"""

    queue: str
    chips: list[str]
    cards: int | Unset = 1
    replicas: int | Unset = 1
    memory: int | Unset = 0
    priority: int | Unset = 0
    run_seconds: int | None | Unset = UNSET
    within: str | Unset = ""
    near: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        chips = self.chips

        cards = self.cards

        replicas = self.replicas

        memory = self.memory

        priority = self.priority

        run_seconds: int | None | Unset
        if isinstance(self.run_seconds, Unset):
            run_seconds = UNSET
        else:
            run_seconds = self.run_seconds

        within = self.within

        near = self.near

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "queue": queue,
                "chips": chips,
            }
        )
        if cards is not UNSET:
            field_dict["cards"] = cards
        if replicas is not UNSET:
            field_dict["replicas"] = replicas
        if memory is not UNSET:
            field_dict["memory"] = memory
        if priority is not UNSET:
            field_dict["priority"] = priority
        if run_seconds is not UNSET:
            field_dict["run_seconds"] = run_seconds
        if within is not UNSET:
            field_dict["within"] = within
        if near is not UNSET:
            field_dict["near"] = near

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        queue = d.pop("queue")

        chips = cast(list[str], d.pop("chips"))

        cards = d.pop("cards", UNSET)

        replicas = d.pop("replicas", UNSET)

        memory = d.pop("memory", UNSET)

        priority = d.pop("priority", UNSET)

        def _parse_run_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        run_seconds = _parse_run_seconds(d.pop("run_seconds", UNSET))

        within = d.pop("within", UNSET)

        near = d.pop("near", UNSET)

        claim_dry_run_request_request = cls(
            queue=queue,
            chips=chips,
            cards=cards,
            replicas=replicas,
            memory=memory,
            priority=priority,
            run_seconds=run_seconds,
            within=within,
            near=near,
        )

        return claim_dry_run_request_request
