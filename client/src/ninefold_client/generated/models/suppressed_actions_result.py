from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.suppressed_pool import SuppressedPool


T = TypeVar("T", bound="SuppressedActionsResult")


@_attrs_define
class SuppressedActionsResult:
    """SuppressedActionsResult"""

    pool: None | SuppressedPool
    done: int
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        from ..models.suppressed_pool import SuppressedPool

        pool: dict[str, Any] | None
        if isinstance(self.pool, SuppressedPool):
            pool = self.pool.to_dict()
        else:
            pool = self.pool

        done = self.done

        left_out = self.left_out

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "pool": pool,
                "done": done,
                "left_out": left_out,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.suppressed_pool import SuppressedPool

        d = dict(src_dict)

        def _parse_pool(data: object) -> None | SuppressedPool:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                pool_type_0 = SuppressedPool.from_dict(data)

                return pool_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SuppressedPool, data)

        pool = _parse_pool(d.pop("pool"))

        done = d.pop("done")

        left_out = d.pop("left_out")

        suppressed_actions_result = cls(
            pool=pool,
            done=done,
            left_out=left_out,
        )

        return suppressed_actions_result
