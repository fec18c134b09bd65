from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.serve_spec_request_chunked_prefill import (
    ServeSpecRequestChunkedPrefill,
    check_serve_spec_request_chunked_prefill,
)
from ..models.serve_spec_request_graph_mode import (
    ServeSpecRequestGraphMode,
    check_serve_spec_request_graph_mode,
)
from ..models.serve_spec_request_kv_cache_precision import (
    ServeSpecRequestKVCachePrecision,
    check_serve_spec_request_kv_cache_precision,
)
from ..models.serve_spec_request_precision import (
    ServeSpecRequestPrecision,
    check_serve_spec_request_precision,
)
from ..models.serve_spec_request_prefix_caching import (
    ServeSpecRequestPrefixCaching,
    check_serve_spec_request_prefix_caching,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.serve_spec_request_parallel_plan import ServeSpecRequestParallelPlan


T = TypeVar("T", bound="ServeSpecRequest")


@_attrs_define
class ServeSpecRequest:
    """Fields of the engines with the task serve."""

    model_name: str | Unset = "model"
    queue_size: int | Unset = 64
    precision: ServeSpecRequestPrecision | Unset = "auto"
    context_length: int | None | Unset = UNSET
    concurrency: int | None | Unset = UNSET
    memory_fraction: float | Unset = 0.9
    kv_precision: ServeSpecRequestKVCachePrecision | Unset = "auto"
    prefix_cache: ServeSpecRequestPrefixCaching | Unset = "auto"
    chunked_prefill: ServeSpecRequestChunkedPrefill | Unset = "auto"
    graphs: ServeSpecRequestGraphMode | Unset = "auto"
    parallel: None | ServeSpecRequestParallelPlan | Unset = UNSET
    tool_call_parser: None | str | Unset = UNSET
    reasoning_parser: None | str | Unset = UNSET
    extra_args: list[str] | None | Unset = UNSET
    engine_version: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.serve_spec_request_parallel_plan import (
            ServeSpecRequestParallelPlan,
        )

        model_name = self.model_name

        queue_size = self.queue_size

        precision: str | Unset = UNSET
        if not isinstance(self.precision, Unset):
            precision = self.precision

        context_length: int | None | Unset
        if isinstance(self.context_length, Unset):
            context_length = UNSET
        else:
            context_length = self.context_length

        concurrency: int | None | Unset
        if isinstance(self.concurrency, Unset):
            concurrency = UNSET
        else:
            concurrency = self.concurrency

        memory_fraction = self.memory_fraction

        kv_precision: str | Unset = UNSET
        if not isinstance(self.kv_precision, Unset):
            kv_precision = self.kv_precision

        prefix_cache: str | Unset = UNSET
        if not isinstance(self.prefix_cache, Unset):
            prefix_cache = self.prefix_cache

        chunked_prefill: str | Unset = UNSET
        if not isinstance(self.chunked_prefill, Unset):
            chunked_prefill = self.chunked_prefill

        graphs: str | Unset = UNSET
        if not isinstance(self.graphs, Unset):
            graphs = self.graphs

        parallel: dict[str, Any] | None | Unset
        if isinstance(self.parallel, Unset):
            parallel = UNSET
        elif isinstance(self.parallel, ServeSpecRequestParallelPlan):
            parallel = self.parallel.to_dict()
        else:
            parallel = self.parallel

        tool_call_parser: None | str | Unset
        if isinstance(self.tool_call_parser, Unset):
            tool_call_parser = UNSET
        else:
            tool_call_parser = self.tool_call_parser

        reasoning_parser: None | str | Unset
        if isinstance(self.reasoning_parser, Unset):
            reasoning_parser = UNSET
        else:
            reasoning_parser = self.reasoning_parser

        extra_args: list[str] | None | Unset
        if isinstance(self.extra_args, Unset):
            extra_args = UNSET
        elif isinstance(self.extra_args, list):
            extra_args = self.extra_args

        else:
            extra_args = self.extra_args

        engine_version: None | str | Unset
        if isinstance(self.engine_version, Unset):
            engine_version = UNSET
        else:
            engine_version = self.engine_version

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if model_name is not UNSET:
            field_dict["model_name"] = model_name
        if queue_size is not UNSET:
            field_dict["queue_size"] = queue_size
        if precision is not UNSET:
            field_dict["precision"] = precision
        if context_length is not UNSET:
            field_dict["context_length"] = context_length
        if concurrency is not UNSET:
            field_dict["concurrency"] = concurrency
        if memory_fraction is not UNSET:
            field_dict["memory_fraction"] = memory_fraction
        if kv_precision is not UNSET:
            field_dict["kv_precision"] = kv_precision
        if prefix_cache is not UNSET:
            field_dict["prefix_cache"] = prefix_cache
        if chunked_prefill is not UNSET:
            field_dict["chunked_prefill"] = chunked_prefill
        if graphs is not UNSET:
            field_dict["graphs"] = graphs
        if parallel is not UNSET:
            field_dict["parallel"] = parallel
        if tool_call_parser is not UNSET:
            field_dict["tool_call_parser"] = tool_call_parser
        if reasoning_parser is not UNSET:
            field_dict["reasoning_parser"] = reasoning_parser
        if extra_args is not UNSET:
            field_dict["extra_args"] = extra_args
        if engine_version is not UNSET:
            field_dict["engine_version"] = engine_version

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.serve_spec_request_parallel_plan import (
            ServeSpecRequestParallelPlan,
        )

        d = dict(src_dict)
        model_name = d.pop("model_name", UNSET)

        queue_size = d.pop("queue_size", UNSET)

        _precision = d.pop("precision", UNSET)
        precision: ServeSpecRequestPrecision | Unset
        if isinstance(_precision, Unset):
            precision = UNSET
        else:
            precision = check_serve_spec_request_precision(_precision)

        def _parse_context_length(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        context_length = _parse_context_length(d.pop("context_length", UNSET))

        def _parse_concurrency(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        concurrency = _parse_concurrency(d.pop("concurrency", UNSET))

        memory_fraction = d.pop("memory_fraction", UNSET)

        _kv_precision = d.pop("kv_precision", UNSET)
        kv_precision: ServeSpecRequestKVCachePrecision | Unset
        if isinstance(_kv_precision, Unset):
            kv_precision = UNSET
        else:
            kv_precision = check_serve_spec_request_kv_cache_precision(_kv_precision)

        _prefix_cache = d.pop("prefix_cache", UNSET)
        prefix_cache: ServeSpecRequestPrefixCaching | Unset
        if isinstance(_prefix_cache, Unset):
            prefix_cache = UNSET
        else:
            prefix_cache = check_serve_spec_request_prefix_caching(_prefix_cache)

        _chunked_prefill = d.pop("chunked_prefill", UNSET)
        chunked_prefill: ServeSpecRequestChunkedPrefill | Unset
        if isinstance(_chunked_prefill, Unset):
            chunked_prefill = UNSET
        else:
            chunked_prefill = check_serve_spec_request_chunked_prefill(_chunked_prefill)

        _graphs = d.pop("graphs", UNSET)
        graphs: ServeSpecRequestGraphMode | Unset
        if isinstance(_graphs, Unset):
            graphs = UNSET
        else:
            graphs = check_serve_spec_request_graph_mode(_graphs)

        def _parse_parallel(data: object) -> None | ServeSpecRequestParallelPlan | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                parallel_type_0 = ServeSpecRequestParallelPlan.from_dict(data)

                return parallel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ServeSpecRequestParallelPlan | Unset, data)

        parallel = _parse_parallel(d.pop("parallel", UNSET))

        def _parse_tool_call_parser(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tool_call_parser = _parse_tool_call_parser(d.pop("tool_call_parser", UNSET))

        def _parse_reasoning_parser(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reasoning_parser = _parse_reasoning_parser(d.pop("reasoning_parser", UNSET))

        def _parse_extra_args(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                extra_args_type_0 = cast(list[str], data)

                return extra_args_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        extra_args = _parse_extra_args(d.pop("extra_args", UNSET))

        def _parse_engine_version(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        engine_version = _parse_engine_version(d.pop("engine_version", UNSET))

        serve_spec_request = cls(
            model_name=model_name,
            queue_size=queue_size,
            precision=precision,
            context_length=context_length,
            concurrency=concurrency,
            memory_fraction=memory_fraction,
            kv_precision=kv_precision,
            prefix_cache=prefix_cache,
            chunked_prefill=chunked_prefill,
            graphs=graphs,
            parallel=parallel,
            tool_call_parser=tool_call_parser,
            reasoning_parser=reasoning_parser,
            extra_args=extra_args,
            engine_version=engine_version,
        )

        return serve_spec_request
