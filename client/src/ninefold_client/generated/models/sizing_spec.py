from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.sizing_spec_parallel_plan import SizingSpecParallelPlan


T = TypeVar("T", bound="SizingSpec")


@_attrs_define
class SizingSpec:
    """Spec with all defaults filled in."""

    task: None | str | Unset = UNSET
    scheme: None | str | Unset = UNSET
    context: int | None | Unset = UNSET
    concurrency: int | None | Unset = UNSET
    kv_precision: None | str | Unset = UNSET
    memory_fraction: float | None | Unset = UNSET
    method: None | str | Unset = UNSET
    rank: int | None | Unset = UNSET
    adapters: int | None | Unset = UNSET
    batch: int | None | Unset = UNSET
    gradient_accumulation: int | None | Unset = UNSET
    precision: None | str | Unset = UNSET
    recompute: None | str | Unset = UNSET
    cards: int | None | Unset = UNSET
    parallel: None | SizingSpecParallelPlan | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.sizing_spec_parallel_plan import SizingSpecParallelPlan

        task: None | str | Unset
        if isinstance(self.task, Unset):
            task = UNSET
        else:
            task = self.task

        scheme: None | str | Unset
        if isinstance(self.scheme, Unset):
            scheme = UNSET
        else:
            scheme = self.scheme

        context: int | None | Unset
        if isinstance(self.context, Unset):
            context = UNSET
        else:
            context = self.context

        concurrency: int | None | Unset
        if isinstance(self.concurrency, Unset):
            concurrency = UNSET
        else:
            concurrency = self.concurrency

        kv_precision: None | str | Unset
        if isinstance(self.kv_precision, Unset):
            kv_precision = UNSET
        else:
            kv_precision = self.kv_precision

        memory_fraction: float | None | Unset
        if isinstance(self.memory_fraction, Unset):
            memory_fraction = UNSET
        else:
            memory_fraction = self.memory_fraction

        method: None | str | Unset
        if isinstance(self.method, Unset):
            method = UNSET
        else:
            method = self.method

        rank: int | None | Unset
        if isinstance(self.rank, Unset):
            rank = UNSET
        else:
            rank = self.rank

        adapters: int | None | Unset
        if isinstance(self.adapters, Unset):
            adapters = UNSET
        else:
            adapters = self.adapters

        batch: int | None | Unset
        if isinstance(self.batch, Unset):
            batch = UNSET
        else:
            batch = self.batch

        gradient_accumulation: int | None | Unset
        if isinstance(self.gradient_accumulation, Unset):
            gradient_accumulation = UNSET
        else:
            gradient_accumulation = self.gradient_accumulation

        precision: None | str | Unset
        if isinstance(self.precision, Unset):
            precision = UNSET
        else:
            precision = self.precision

        recompute: None | str | Unset
        if isinstance(self.recompute, Unset):
            recompute = UNSET
        else:
            recompute = self.recompute

        cards: int | None | Unset
        if isinstance(self.cards, Unset):
            cards = UNSET
        else:
            cards = self.cards

        parallel: dict[str, Any] | None | Unset
        if isinstance(self.parallel, Unset):
            parallel = UNSET
        elif isinstance(self.parallel, SizingSpecParallelPlan):
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
        from ..models.sizing_spec_parallel_plan import SizingSpecParallelPlan

        d = dict(src_dict)

        def _parse_task(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        task = _parse_task(d.pop("task", UNSET))

        def _parse_scheme(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        scheme = _parse_scheme(d.pop("scheme", UNSET))

        def _parse_context(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        context = _parse_context(d.pop("context", UNSET))

        def _parse_concurrency(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        concurrency = _parse_concurrency(d.pop("concurrency", UNSET))

        def _parse_kv_precision(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        kv_precision = _parse_kv_precision(d.pop("kv_precision", UNSET))

        def _parse_memory_fraction(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        memory_fraction = _parse_memory_fraction(d.pop("memory_fraction", UNSET))

        def _parse_method(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        method = _parse_method(d.pop("method", UNSET))

        def _parse_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rank = _parse_rank(d.pop("rank", UNSET))

        def _parse_adapters(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        adapters = _parse_adapters(d.pop("adapters", UNSET))

        def _parse_batch(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch = _parse_batch(d.pop("batch", UNSET))

        def _parse_gradient_accumulation(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        gradient_accumulation = _parse_gradient_accumulation(d.pop("gradient_accumulation", UNSET))

        def _parse_precision(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        precision = _parse_precision(d.pop("precision", UNSET))

        def _parse_recompute(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        recompute = _parse_recompute(d.pop("recompute", UNSET))

        def _parse_cards(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        cards = _parse_cards(d.pop("cards", UNSET))

        def _parse_parallel(data: object) -> None | SizingSpecParallelPlan | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parallel_type_0 = SizingSpecParallelPlan.from_dict(data)

                return parallel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SizingSpecParallelPlan | Unset, data)

        parallel = _parse_parallel(d.pop("parallel", UNSET))

        sizing_spec = cls(
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

        return sizing_spec
