from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.retry_on_enum import RetryOnEnum, check_retry_on_enum
from ..types import UNSET, Unset

T = TypeVar("T", bound="RetryPolicy")


@_attrs_define
class RetryPolicy:
    """The fields of ``controlplane.domain.jobs.retries``, as a schema."""

    max_retries: int | Unset = 3
    backoff_seconds: int | Unset = 10
    max_backoff_seconds: int | Unset = 360
    retry_on: list[RetryOnEnum] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        max_retries = self.max_retries

        backoff_seconds = self.backoff_seconds

        max_backoff_seconds = self.max_backoff_seconds

        retry_on: list[str] | Unset = UNSET
        if not isinstance(self.retry_on, Unset):
            retry_on = []
            for retry_on_item_data in self.retry_on:
                retry_on_item: str = retry_on_item_data
                retry_on.append(retry_on_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_retries is not UNSET:
            field_dict["max_retries"] = max_retries
        if backoff_seconds is not UNSET:
            field_dict["backoff_seconds"] = backoff_seconds
        if max_backoff_seconds is not UNSET:
            field_dict["max_backoff_seconds"] = max_backoff_seconds
        if retry_on is not UNSET:
            field_dict["retry_on"] = retry_on

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        max_retries = d.pop("max_retries", UNSET)

        backoff_seconds = d.pop("backoff_seconds", UNSET)

        max_backoff_seconds = d.pop("max_backoff_seconds", UNSET)

        _retry_on = d.pop("retry_on", UNSET)
        retry_on: list[RetryOnEnum] | Unset = UNSET
        if _retry_on is not UNSET:
            retry_on = []
            for retry_on_item_data in _retry_on:
                retry_on_item = check_retry_on_enum(retry_on_item_data)

                retry_on.append(retry_on_item)

        retry_policy = cls(
            max_retries=max_retries,
            backoff_seconds=backoff_seconds,
            max_backoff_seconds=max_backoff_seconds,
            retry_on=retry_on,
        )

        return retry_policy
