from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.evaluate_job import EvaluateJob
    from ..models.finetune_job import FinetuneJob
    from ..models.quantize_job import QuantizeJob
    from ..models.script_job import ScriptJob


T = TypeVar("T", bound="PaginatedJobList")


@_attrs_define
class PaginatedJobList:
    """PaginatedJobList"""

    next_: None | str
    previous: None | str
    results: list[EvaluateJob | FinetuneJob | QuantizeJob | ScriptJob]

    def to_dict(self) -> dict[str, Any]:
        from ..models.evaluate_job import EvaluateJob
        from ..models.finetune_job import FinetuneJob
        from ..models.quantize_job import QuantizeJob

        next_: None | str
        next_ = self.next_

        previous: None | str
        previous = self.previous

        results = []
        for results_item_data in self.results:
            results_item: dict[str, Any]
            if isinstance(results_item_data, FinetuneJob):
                results_item = results_item_data.to_dict()
            elif isinstance(results_item_data, EvaluateJob):
                results_item = results_item_data.to_dict()
            elif isinstance(results_item_data, QuantizeJob):
                results_item = results_item_data.to_dict()
            else:
                results_item = results_item_data.to_dict()

            results.append(results_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "next": next_,
                "previous": previous,
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluate_job import EvaluateJob
        from ..models.finetune_job import FinetuneJob
        from ..models.quantize_job import QuantizeJob
        from ..models.script_job import ScriptJob

        d = dict(src_dict)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        def _parse_previous(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        previous = _parse_previous(d.pop("previous"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:

            def _parse_results_item(
                data: object,
            ) -> EvaluateJob | FinetuneJob | QuantizeJob | ScriptJob:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_job_type_0 = FinetuneJob.from_dict(data)

                    return componentsschemas_job_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_job_type_1 = EvaluateJob.from_dict(data)

                    return componentsschemas_job_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_job_type_2 = QuantizeJob.from_dict(data)

                    return componentsschemas_job_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_job_type_3 = ScriptJob.from_dict(data)

                return componentsschemas_job_type_3

            results_item = _parse_results_item(results_item_data)

            results.append(results_item)

        paginated_job_list = cls(
            next_=next_,
            previous=previous,
            results=results,
        )

        return paginated_job_list
