from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.sizing_request_request_spec_method import (
    SizingRequestRequestSpecMethod,
    check_sizing_request_request_spec_method,
)
from ..models.sizing_request_request_spec_precision import (
    SizingRequestRequestSpecPrecision,
    check_sizing_request_request_spec_precision,
)
from ..models.sizing_request_request_spec_precision_of_the_kv_cache import (
    SizingRequestRequestSpecPrecisionOfTheKVCache,
    check_sizing_request_request_spec_precision_of_the_kv_cache,
)
from ..models.sizing_request_request_spec_recompute_activations import (
    SizingRequestRequestSpecRecomputeActivations,
    check_sizing_request_request_spec_recompute_activations,
)
from ..models.sizing_request_request_spec_task import (
    SizingRequestRequestSpecTask,
    check_sizing_request_request_spec_task,
)
from ..models.sizing_request_request_spec_weights import (
    SizingRequestRequestSpecWeights,
    check_sizing_request_request_spec_weights,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.sizing_request_request_spec_parallel_plan import (
        SizingRequestRequestSpecParallelPlan,
    )


T = TypeVar("T", bound="SizingRequestRequestSpec")


@_attrs_define
class SizingRequestRequestSpec:
    """Inputs of the calculator."""

    task: SizingRequestRequestSpecTask | Unset = "serve"
    scheme: SizingRequestRequestSpecWeights | Unset = "stored"
    context: int | Unset = 4096
    concurrency: int | Unset = 16
    kv_precision: SizingRequestRequestSpecPrecisionOfTheKVCache | Unset = "auto"
    memory_fraction: float | Unset = 0.9
    method: SizingRequestRequestSpecMethod | Unset = "full"
    rank: int | Unset = 16
    adapters: int | Unset = 0
    batch: int | Unset = 1
    gradient_accumulation: int | Unset = 1
    precision: SizingRequestRequestSpecPrecision | Unset = "bfloat16"
    recompute: SizingRequestRequestSpecRecomputeActivations | Unset = "on"
    cards: int | None | Unset = UNSET
    parallel: None | SizingRequestRequestSpecParallelPlan | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.sizing_request_request_spec_parallel_plan import (
            SizingRequestRequestSpecParallelPlan,
        )

        task: str | Unset = UNSET
        if not isinstance(self.task, Unset):
            task = self.task

        scheme: str | Unset = UNSET
        if not isinstance(self.scheme, Unset):
            scheme = self.scheme

        context = self.context

        concurrency = self.concurrency

        kv_precision: str | Unset = UNSET
        if not isinstance(self.kv_precision, Unset):
            kv_precision = self.kv_precision

        memory_fraction = self.memory_fraction

        method: str | Unset = UNSET
        if not isinstance(self.method, Unset):
            method = self.method

        rank = self.rank

        adapters = self.adapters

        batch = self.batch

        gradient_accumulation = self.gradient_accumulation

        precision: str | Unset = UNSET
        if not isinstance(self.precision, Unset):
            precision = self.precision

        recompute: str | Unset = UNSET
        if not isinstance(self.recompute, Unset):
            recompute = self.recompute

        cards: int | None | Unset
        if isinstance(self.cards, Unset):
            cards = UNSET
        else:
            cards = self.cards

        parallel: dict[str, Any] | None | Unset
        if isinstance(self.parallel, Unset):
            parallel = UNSET
        elif isinstance(self.parallel, SizingRequestRequestSpecParallelPlan):
            parallel = self.parallel.to_dict()
        else:
            parallel = self.parallel

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if task is not UNSET:
            field_dict["task"] = task
        if scheme is not UNSET:
            field_dict["scheme"] = scheme
        if context is not UNSET:
            field_dict["context"] = context
        if concurrency is not UNSET:
            field_dict["concurrency"] = concurrency
        if kv_precision is not UNSET:
            field_dict["kv_precision"] = kv_precision
        if memory_fraction is not UNSET:
            field_dict["memory_fraction"] = memory_fraction
        if method is not UNSET:
            field_dict["method"] = method
        if rank is not UNSET:
            field_dict["rank"] = rank
        if adapters is not UNSET:
            field_dict["adapters"] = adapters
        if batch is not UNSET:
            field_dict["batch"] = batch
        if gradient_accumulation is not UNSET:
            field_dict["gradient_accumulation"] = gradient_accumulation
        if precision is not UNSET:
            field_dict["precision"] = precision
        if recompute is not UNSET:
            field_dict["recompute"] = recompute
        if cards is not UNSET:
            field_dict["cards"] = cards
        if parallel is not UNSET:
            field_dict["parallel"] = parallel

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.sizing_request_request_spec_parallel_plan import (
            SizingRequestRequestSpecParallelPlan,
        )

        d = dict(src_dict)
        _task = d.pop("task", UNSET)
        task: SizingRequestRequestSpecTask | Unset
        if isinstance(_task, Unset):
            task = UNSET
        else:
            task = check_sizing_request_request_spec_task(_task)

        _scheme = d.pop("scheme", UNSET)
        scheme: SizingRequestRequestSpecWeights | Unset
        if isinstance(_scheme, Unset):
            scheme = UNSET
        else:
            scheme = check_sizing_request_request_spec_weights(_scheme)

        context = d.pop("context", UNSET)

        concurrency = d.pop("concurrency", UNSET)

        _kv_precision = d.pop("kv_precision", UNSET)
        kv_precision: SizingRequestRequestSpecPrecisionOfTheKVCache | Unset
        if isinstance(_kv_precision, Unset):
            kv_precision = UNSET
        else:
            kv_precision = check_sizing_request_request_spec_precision_of_the_kv_cache(
                _kv_precision
            )

        memory_fraction = d.pop("memory_fraction", UNSET)

        _method = d.pop("method", UNSET)
        method: SizingRequestRequestSpecMethod | Unset
        if isinstance(_method, Unset):
            method = UNSET
        else:
            method = check_sizing_request_request_spec_method(_method)

        rank = d.pop("rank", UNSET)

        adapters = d.pop("adapters", UNSET)

        batch = d.pop("batch", UNSET)

        gradient_accumulation = d.pop("gradient_accumulation", UNSET)

        _precision = d.pop("precision", UNSET)
        precision: SizingRequestRequestSpecPrecision | Unset
        if isinstance(_precision, Unset):
            precision = UNSET
        else:
            precision = check_sizing_request_request_spec_precision(_precision)

        _recompute = d.pop("recompute", UNSET)
        recompute: SizingRequestRequestSpecRecomputeActivations | Unset
        if isinstance(_recompute, Unset):
            recompute = UNSET
        else:
            recompute = check_sizing_request_request_spec_recompute_activations(_recompute)

        def _parse_cards(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cards = _parse_cards(d.pop("cards", UNSET))

        def _parse_parallel(data: object) -> None | SizingRequestRequestSpecParallelPlan | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parallel_type_0 = SizingRequestRequestSpecParallelPlan.from_dict(data)

                return parallel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SizingRequestRequestSpecParallelPlan | Unset, data)

        parallel = _parse_parallel(d.pop("parallel", UNSET))

        sizing_request_request_spec = cls(
            task=task,
            scheme=scheme,
            context=context,
            concurrency=concurrency,
            kv_precision=kv_precision,
            memory_fraction=memory_fraction,
            method=method,
            rank=rank,
            adapters=adapters,
            batch=batch,
            gradient_accumulation=gradient_accumulation,
            precision=precision,
            recompute=recompute,
            cards=cards,
            parallel=parallel,
        )

        return sizing_request_request_spec
