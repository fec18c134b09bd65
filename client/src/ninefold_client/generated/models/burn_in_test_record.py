from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="BurnInTestRecord")


@_attrs_define
class BurnInTestRecord:
    """The outcome of one test on one card, as the program writes it."""

    test: str | Unset = UNSET
    card: int | Unset = UNSET
    verdict: str | Unset = UNSET
    measured: float | None | Unset = UNSET
    expected: float | None | Unset = UNSET
    unit: str | Unset = UNSET
    message: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        test = self.test

        card = self.card

        verdict = self.verdict

        measured: float | None | Unset
        if isinstance(self.measured, Unset):
            measured = UNSET
        else:
            measured = self.measured

        expected: float | None | Unset
        if isinstance(self.expected, Unset):
            expected = UNSET
        else:
            expected = self.expected

        unit = self.unit

        message = self.message

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if test is not UNSET:
            field_dict["test"] = test
        if card is not UNSET:
            field_dict["card"] = card
        if verdict is not UNSET:
            field_dict["verdict"] = verdict
        if measured is not UNSET:
            field_dict["measured"] = measured
        if expected is not UNSET:
            field_dict["expected"] = expected
        if unit is not UNSET:
            field_dict["unit"] = unit
        if message is not UNSET:
            field_dict["message"] = message

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        test = d.pop("test", UNSET)

        card = d.pop("card", UNSET)

        verdict = d.pop("verdict", UNSET)

        def _parse_measured(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        measured = _parse_measured(d.pop("measured", UNSET))

        def _parse_expected(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        expected = _parse_expected(d.pop("expected", UNSET))

        unit = d.pop("unit", UNSET)

        message = d.pop("message", UNSET)

        burn_in_test_record = cls(
            test=test,
            card=card,
            verdict=verdict,
            measured=measured,
            expected=expected,
            unit=unit,
            message=message,
        )

        return burn_in_test_record
