from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.quantize_spec_tolerance import QuantizeSpecTolerance


T = TypeVar("T", bound="QuantizeSpec")


@_attrs_define
class QuantizeSpec:
    """Fields of the engines with the task quantize."""

    scheme: None | str | Unset = UNSET
    calibration_split: None | str | Unset = UNSET
    calibration_rows: int | None | Unset = UNSET
    max_length: int | None | Unset = UNSET
    smoothing_strength: float | None | Unset = UNSET
    group_size: int | None | Unset = UNSET
    ignore: list[str] | None | Unset = UNSET
    metrics: list[str] | None | Unset = UNSET
    split: None | str | Unset = UNSET
    limit: int | None | Unset = UNSET
    max_new_tokens: int | None | Unset = UNSET
    batch_size: int | None | Unset = UNSET
    tolerance: None | QuantizeSpecTolerance | Unset = UNSET
    seed: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.quantize_spec_tolerance import QuantizeSpecTolerance

        scheme: None | str | Unset
        if isinstance(self.scheme, Unset):
            scheme = UNSET
        else:
            scheme = self.scheme

        calibration_split: None | str | Unset
        if isinstance(self.calibration_split, Unset):
            calibration_split = UNSET
        else:
            calibration_split = self.calibration_split

        calibration_rows: int | None | Unset
        if isinstance(self.calibration_rows, Unset):
            calibration_rows = UNSET
        else:
            calibration_rows = self.calibration_rows

        max_length: int | None | Unset
        if isinstance(self.max_length, Unset):
            max_length = UNSET
        else:
            max_length = self.max_length

        smoothing_strength: float | None | Unset
        if isinstance(self.smoothing_strength, Unset):
            smoothing_strength = UNSET
        else:
            smoothing_strength = self.smoothing_strength

        group_size: int | None | Unset
        if isinstance(self.group_size, Unset):
            group_size = UNSET
        else:
            group_size = self.group_size

        ignore: list[str] | None | Unset
        if isinstance(self.ignore, Unset):
            ignore = UNSET
        elif isinstance(self.ignore, list):
            ignore = self.ignore

        else:
            ignore = self.ignore

        metrics: list[str] | None | Unset
        if isinstance(self.metrics, Unset):
            metrics = UNSET
        elif isinstance(self.metrics, list):
            metrics = self.metrics

        else:
            metrics = self.metrics

        split: None | str | Unset
        if isinstance(self.split, Unset):
            split = UNSET
        else:
            split = self.split

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        max_new_tokens: int | None | Unset
        if isinstance(self.max_new_tokens, Unset):
            max_new_tokens = UNSET
        else:
            max_new_tokens = self.max_new_tokens

        batch_size: int | None | Unset
        if isinstance(self.batch_size, Unset):
            batch_size = UNSET
        else:
            batch_size = self.batch_size

        tolerance: dict[str, Any] | None | Unset
        if isinstance(self.tolerance, Unset):
            tolerance = UNSET
        elif isinstance(self.tolerance, QuantizeSpecTolerance):
            tolerance = self.tolerance.to_dict()
        else:
            tolerance = self.tolerance

        seed: int | None | Unset
        if isinstance(self.seed, Unset):
            seed = UNSET
        else:
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
        from ..models.quantize_spec_tolerance import QuantizeSpecTolerance

        d = dict(src_dict)

        def _parse_scheme(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        scheme = _parse_scheme(d.pop("scheme", UNSET))

        def _parse_calibration_split(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        calibration_split = _parse_calibration_split(d.pop("calibration_split", UNSET))

        def _parse_calibration_rows(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        calibration_rows = _parse_calibration_rows(d.pop("calibration_rows", UNSET))

        def _parse_max_length(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_length = _parse_max_length(d.pop("max_length", UNSET))

        def _parse_smoothing_strength(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        smoothing_strength = _parse_smoothing_strength(d.pop("smoothing_strength", UNSET))

        def _parse_group_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        group_size = _parse_group_size(d.pop("group_size", UNSET))

        def _parse_ignore(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                ignore_type_0 = cast(list[str], data)

                return ignore_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        ignore = _parse_ignore(d.pop("ignore", UNSET))

        def _parse_metrics(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                metrics_type_0 = cast(list[str], data)

                return metrics_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        metrics = _parse_metrics(d.pop("metrics", UNSET))

        def _parse_split(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        split = _parse_split(d.pop("split", UNSET))

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_max_new_tokens(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_new_tokens = _parse_max_new_tokens(d.pop("max_new_tokens", UNSET))

        def _parse_batch_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch_size = _parse_batch_size(d.pop("batch_size", UNSET))

        def _parse_tolerance(data: object) -> None | QuantizeSpecTolerance | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tolerance_type_0 = QuantizeSpecTolerance.from_dict(data)

                return tolerance_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QuantizeSpecTolerance | Unset, data)

        tolerance = _parse_tolerance(d.pop("tolerance", UNSET))

        def _parse_seed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seed = _parse_seed(d.pop("seed", UNSET))

        quantize_spec = cls(
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

        return quantize_spec
