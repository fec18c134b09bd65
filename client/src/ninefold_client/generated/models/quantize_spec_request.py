from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.quantize_spec_request_metrics_item import (
    QuantizeSpecRequestMetricsItem,
    check_quantize_spec_request_metrics_item,
)
from ..models.quantize_spec_request_quantization_scheme import (
    QuantizeSpecRequestQuantizationScheme,
    check_quantize_spec_request_quantization_scheme,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.quantize_spec_request_tolerance import QuantizeSpecRequestTolerance


T = TypeVar("T", bound="QuantizeSpecRequest")


@_attrs_define
class QuantizeSpecRequest:
    """Fields of the engines with the task quantize."""

    scheme: QuantizeSpecRequestQuantizationScheme | Unset = "w8a8-smoothquant"
    calibration_split: str | Unset = "train"
    calibration_rows: int | Unset = 128
    max_length: int | Unset = 512
    smoothing_strength: float | Unset = 0.8
    group_size: int | None | Unset = UNSET
    ignore: list[str] | Unset = UNSET
    metrics: list[QuantizeSpecRequestMetricsItem] | Unset = UNSET
    split: str | Unset = "test"
    limit: int | None | Unset = 256
    max_new_tokens: int | Unset = 128
    batch_size: int | Unset = 32
    tolerance: None | QuantizeSpecRequestTolerance | Unset = UNSET
    seed: int | Unset = 42

    def to_dict(self) -> dict[str, Any]:
        from ..models.quantize_spec_request_tolerance import (
            QuantizeSpecRequestTolerance,
        )

        scheme: str | Unset = UNSET
        if not isinstance(self.scheme, Unset):
            scheme = self.scheme

        calibration_split = self.calibration_split

        calibration_rows = self.calibration_rows

        max_length = self.max_length

        smoothing_strength = self.smoothing_strength

        group_size: int | None | Unset
        if isinstance(self.group_size, Unset):
            group_size = UNSET
        else:
            group_size = self.group_size

        ignore: list[str] | Unset = UNSET
        if not isinstance(self.ignore, Unset):
            ignore = self.ignore

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

        tolerance: dict[str, Any] | None | Unset
        if isinstance(self.tolerance, Unset):
            tolerance = UNSET
        elif isinstance(self.tolerance, QuantizeSpecRequestTolerance):
            tolerance = self.tolerance.to_dict()
        else:
            tolerance = self.tolerance

        seed = self.seed

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if scheme is not UNSET:
            field_dict["scheme"] = scheme
        if calibration_split is not UNSET:
            field_dict["calibration_split"] = calibration_split
        if calibration_rows is not UNSET:
            field_dict["calibration_rows"] = calibration_rows
        if max_length is not UNSET:
            field_dict["max_length"] = max_length
        if smoothing_strength is not UNSET:
            field_dict["smoothing_strength"] = smoothing_strength
        if group_size is not UNSET:
            field_dict["group_size"] = group_size
        if ignore is not UNSET:
            field_dict["ignore"] = ignore
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
        if tolerance is not UNSET:
            field_dict["tolerance"] = tolerance
        if seed is not UNSET:
            field_dict["seed"] = seed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.quantize_spec_request_tolerance import (
            QuantizeSpecRequestTolerance,
        )

        d = dict(src_dict)
        _scheme = d.pop("scheme", UNSET)
        scheme: QuantizeSpecRequestQuantizationScheme | Unset
        if isinstance(_scheme, Unset):
            scheme = UNSET
        else:
            scheme = check_quantize_spec_request_quantization_scheme(_scheme)

        calibration_split = d.pop("calibration_split", UNSET)

        calibration_rows = d.pop("calibration_rows", UNSET)

        max_length = d.pop("max_length", UNSET)

        smoothing_strength = d.pop("smoothing_strength", UNSET)

        def _parse_group_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        group_size = _parse_group_size(d.pop("group_size", UNSET))

        ignore = cast(list[str], d.pop("ignore", UNSET))

        _metrics = d.pop("metrics", UNSET)
        metrics: list[QuantizeSpecRequestMetricsItem] | Unset = UNSET
        if _metrics is not UNSET:
            metrics = []
            for metrics_item_data in _metrics:
                metrics_item = check_quantize_spec_request_metrics_item(metrics_item_data)

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

        def _parse_tolerance(data: object) -> None | QuantizeSpecRequestTolerance | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tolerance_type_0 = QuantizeSpecRequestTolerance.from_dict(data)

                return tolerance_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QuantizeSpecRequestTolerance | Unset, data)

        tolerance = _parse_tolerance(d.pop("tolerance", UNSET))

        seed = d.pop("seed", UNSET)

        quantize_spec_request = cls(
            scheme=scheme,
            calibration_split=calibration_split,
            calibration_rows=calibration_rows,
            max_length=max_length,
            smoothing_strength=smoothing_strength,
            group_size=group_size,
            ignore=ignore,
            metrics=metrics,
            split=split,
            limit=limit,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            tolerance=tolerance,
            seed=seed,
        )

        return quantize_spec_request
