from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.format_enum import FormatEnum, check_format_enum
from ..models.schema_enum import SchemaEnum, check_schema_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dataset_statistics_roles import DatasetStatisticsRoles
    from ..models.dataset_statistics_rows_by_split import DatasetStatisticsRowsBySplit
    from ..models.row_warning import RowWarning
    from ..models.text_lengths import TextLengths


T = TypeVar("T", bound="DatasetStatistics")


@_attrs_define
class DatasetStatistics:
    """DatasetStatistics"""

    format_: FormatEnum
    schema: SchemaEnum
    rows_by_split: DatasetStatisticsRowsBySplit
    duplicates: int
    ignored_columns: list[str]
    roles: DatasetStatisticsRoles
    prompt_characters: TextLengths
    answer_characters: TextLengths
    histogram: list[int]
    characters: int | Unset = UNSET
    warnings: list[RowWarning] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        format_: str = self.format_

        schema: str = self.schema

        rows_by_split = self.rows_by_split.to_dict()

        duplicates = self.duplicates

        ignored_columns = self.ignored_columns

        roles = self.roles.to_dict()

        prompt_characters = self.prompt_characters.to_dict()

        answer_characters = self.answer_characters.to_dict()

        histogram = self.histogram

        characters = self.characters

        warnings: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.warnings, Unset):
            warnings = []
            for warnings_item_data in self.warnings:
                warnings_item = warnings_item_data.to_dict()
                warnings.append(warnings_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "format": format_,
                "schema": schema,
                "rows_by_split": rows_by_split,
                "duplicates": duplicates,
                "ignored_columns": ignored_columns,
                "roles": roles,
                "prompt_characters": prompt_characters,
                "answer_characters": answer_characters,
                "histogram": histogram,
            }
        )
        if characters is not UNSET:
            field_dict["characters"] = characters
        if warnings is not UNSET:
            field_dict["warnings"] = warnings

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dataset_statistics_roles import DatasetStatisticsRoles
        from ..models.dataset_statistics_rows_by_split import (
            DatasetStatisticsRowsBySplit,
        )
        from ..models.row_warning import RowWarning
        from ..models.text_lengths import TextLengths

        d = dict(src_dict)
        format_ = check_format_enum(d.pop("format"))

        schema = check_schema_enum(d.pop("schema"))

        rows_by_split = DatasetStatisticsRowsBySplit.from_dict(d.pop("rows_by_split"))

        duplicates = d.pop("duplicates")

        ignored_columns = cast(list[str], d.pop("ignored_columns"))

        roles = DatasetStatisticsRoles.from_dict(d.pop("roles"))

        prompt_characters = TextLengths.from_dict(d.pop("prompt_characters"))

        answer_characters = TextLengths.from_dict(d.pop("answer_characters"))

        histogram = cast(list[int], d.pop("histogram"))

        characters = d.pop("characters", UNSET)

        _warnings = d.pop("warnings", UNSET)
        warnings: list[RowWarning] | Unset = UNSET
        if _warnings is not UNSET:
            warnings = []
            for warnings_item_data in _warnings:
                warnings_item = RowWarning.from_dict(warnings_item_data)

                warnings.append(warnings_item)

        dataset_statistics = cls(
            format_=format_,
            schema=schema,
            rows_by_split=rows_by_split,
            duplicates=duplicates,
            ignored_columns=ignored_columns,
            roles=roles,
            prompt_characters=prompt_characters,
            answer_characters=answer_characters,
            histogram=histogram,
            characters=characters,
            warnings=warnings,
        )

        return dataset_statistics
