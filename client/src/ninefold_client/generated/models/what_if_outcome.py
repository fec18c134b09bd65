from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.what_if import WhatIf
    from ..models.what_if_result import WhatIfResult


T = TypeVar("T", bound="WhatIfOutcome")


@_attrs_define
class WhatIfOutcome:
    """WhatIfOutcome"""

    asked: WhatIf
    answer: None | WhatIfResult

    def to_dict(self) -> dict[str, Any]:
        from ..models.what_if_result import WhatIfResult

        asked = self.asked.to_dict()

        answer: dict[str, Any] | None
        if isinstance(self.answer, WhatIfResult):
            answer = self.answer.to_dict()
        else:
            answer = self.answer

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "asked": asked,
                "answer": answer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.what_if import WhatIf
        from ..models.what_if_result import WhatIfResult

        d = dict(src_dict)
        asked = WhatIf.from_dict(d.pop("asked"))

        def _parse_answer(data: object) -> None | WhatIfResult:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                answer_type_0 = WhatIfResult.from_dict(data)

                return answer_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | WhatIfResult, data)

        answer = _parse_answer(d.pop("answer"))

        what_if_outcome = cls(
            asked=asked,
            answer=answer,
        )

        return what_if_outcome
