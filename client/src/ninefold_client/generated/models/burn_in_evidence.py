from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.burn_in_report import BurnInReport


T = TypeVar("T", bound="BurnInEvidence")


@_attrs_define
class BurnInEvidence:
    """BurnInEvidence"""

    launch: str | Unset = UNSET
    passed: bool | Unset = UNSET
    words: str | Unset = UNSET
    result: BurnInReport | Unset = UNSET
    impossible: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        launch = self.launch

        passed = self.passed

        words = self.words

        result: dict[str, Any] | Unset = UNSET
        if not isinstance(self.result, Unset):
            result = self.result.to_dict()

        impossible = self.impossible

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if launch is not UNSET:
            field_dict["launch"] = launch
        if passed is not UNSET:
            field_dict["passed"] = passed
        if words is not UNSET:
            field_dict["words"] = words
        if result is not UNSET:
            field_dict["result"] = result
        if impossible is not UNSET:
            field_dict["impossible"] = impossible

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.burn_in_report import BurnInReport

        d = dict(src_dict)
        launch = d.pop("launch", UNSET)

        passed = d.pop("passed", UNSET)

        words = d.pop("words", UNSET)

        _result = d.pop("result", UNSET)
        result: BurnInReport | Unset
        if isinstance(_result, Unset):
            result = UNSET
        else:
            result = BurnInReport.from_dict(_result)

        impossible = d.pop("impossible", UNSET)

        burn_in_evidence = cls(
            launch=launch,
            passed=passed,
            words=words,
            result=result,
            impossible=impossible,
        )

        return burn_in_evidence
