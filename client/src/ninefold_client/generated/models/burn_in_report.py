from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.burn_in_test_record import BurnInTestRecord


T = TypeVar("T", bound="BurnInReport")


@_attrs_define
class BurnInReport:
    """What the program of a burn-in writes."""

    kind: str | Unset = UNSET
    passed: bool | Unset = UNSET
    device: str | Unset = UNSET
    seconds: float | Unset = UNSET
    node: str | Unset = UNSET
    torch: str | Unset = UNSET
    tests: list[BurnInTestRecord] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        passed = self.passed

        device = self.device

        seconds = self.seconds

        node = self.node

        torch = self.torch

        tests: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.tests, Unset):
            tests = []
            for tests_item_data in self.tests:
                tests_item = tests_item_data.to_dict()
                tests.append(tests_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if kind is not UNSET:
            field_dict["kind"] = kind
        if passed is not UNSET:
            field_dict["passed"] = passed
        if device is not UNSET:
            field_dict["device"] = device
        if seconds is not UNSET:
            field_dict["seconds"] = seconds
        if node is not UNSET:
            field_dict["node"] = node
        if torch is not UNSET:
            field_dict["torch"] = torch
        if tests is not UNSET:
            field_dict["tests"] = tests

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.burn_in_test_record import BurnInTestRecord

        d = dict(src_dict)
        kind = d.pop("kind", UNSET)

        passed = d.pop("passed", UNSET)

        device = d.pop("device", UNSET)

        seconds = d.pop("seconds", UNSET)

        node = d.pop("node", UNSET)

        torch = d.pop("torch", UNSET)

        _tests = d.pop("tests", UNSET)
        tests: list[BurnInTestRecord] | Unset = UNSET
        if _tests is not UNSET:
            tests = []
            for tests_item_data in _tests:
                tests_item = BurnInTestRecord.from_dict(tests_item_data)

                tests.append(tests_item)

        burn_in_report = cls(
            kind=kind,
            passed=passed,
            device=device,
            seconds=seconds,
            node=node,
            torch=torch,
            tests=tests,
        )

        return burn_in_report
