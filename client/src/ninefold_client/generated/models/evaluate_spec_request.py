from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.evaluate_spec_request_metrics_item import (
    EvaluateSpecRequestMetricsItem,
    check_evaluate_spec_request_metrics_item,
)
from ..types import UNSET, Unset

T = TypeVar("T", bound="EvaluateSpecRequest")


@_attrs_define
class EvaluateSpecRequest:
    """Fields of the engines with the task evaluate."""

    metrics: list[EvaluateSpecRequestMetricsItem] | Unset = UNSET
    split: str | Unset = "test"
    limit: int | None | Unset = UNSET
    max_new_tokens: int | Unset = 128
    batch_size: int | Unset = 32
    seed: int | Unset = 42

    def to_dict(self) -> dict[str, Any]:
        metrics: list[str] | Unset = UNSET
        if not isinstance(self.metrics, Unset):
            metrics = []
            for metrics_item_data in self.metrics:
                metrics_item: str = metrics_item_data
                metrics.append(metrics_item)

        split = self.split

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        max_new_tokens = self.max_new_tokens

        batch_size = self.batch_size

        seed = self.seed

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if metrics is not UNSET:
            field_dict["metrics"] = metrics
        if split is not UNSET:
            field_dict["split"] = split
        if limit is not UNSET:
            field_dict["limit"] = limit
        if max_new_tokens is not UNSET:
            field_dict["max_new_tokens"] = max_new_tokens
        if batch_size is not UNSET:
            field_dict["batch_size"] = batch_size
        if seed is not UNSET:
            field_dict["seed"] = seed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _metrics = d.pop("metrics", UNSET)
        metrics: list[EvaluateSpecRequestMetricsItem] | Unset = UNSET
        if _metrics is not UNSET:
            metrics = []
            for metrics_item_data in _metrics:
                metrics_item = check_evaluate_spec_request_metrics_item(metrics_item_data)

                metrics.append(metrics_item)

        split = d.pop("split", UNSET)

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        max_new_tokens = d.pop("max_new_tokens", UNSET)

        batch_size = d.pop("batch_size", UNSET)

        seed = d.pop("seed", UNSET)

        evaluate_spec_request = cls(
            metrics=metrics,
            split=split,
            limit=limit,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            seed=seed,
        )

        return evaluate_spec_request
