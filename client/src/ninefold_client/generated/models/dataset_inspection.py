from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.column_mapping import ColumnMapping
    from ..models.dataset_statistics import DatasetStatistics
    from ..models.preview_row import PreviewRow


T = TypeVar("T", bound="DatasetInspection")


@_attrs_define
class DatasetInspection:
    """DatasetInspection"""

    columns: ColumnMapping
    rows: int
    splits_given: bool
    content_hash: str
    statistics: DatasetStatistics
    preview: list[PreviewRow]

    def to_dict(self) -> dict[str, Any]:
        columns = self.columns.to_dict()

        rows = self.rows

        splits_given = self.splits_given

        content_hash = self.content_hash

        statistics = self.statistics.to_dict()

        preview = []
        for preview_item_data in self.preview:
            preview_item = preview_item_data.to_dict()
            preview.append(preview_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "columns": columns,
                "rows": rows,
                "splits_given": splits_given,
                "content_hash": content_hash,
                "statistics": statistics,
                "preview": preview,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.column_mapping import ColumnMapping
        from ..models.dataset_statistics import DatasetStatistics
        from ..models.preview_row import PreviewRow

        d = dict(src_dict)
        columns = ColumnMapping.from_dict(d.pop("columns"))

        rows = d.pop("rows")

        splits_given = d.pop("splits_given")

        content_hash = d.pop("content_hash")

        statistics = DatasetStatistics.from_dict(d.pop("statistics"))

        preview = []
        _preview = d.pop("preview")
        for preview_item_data in _preview:
            preview_item = PreviewRow.from_dict(preview_item_data)

            preview.append(preview_item)

        dataset_inspection = cls(
            columns=columns,
            rows=rows,
            splits_given=splits_given,
            content_hash=content_hash,
            statistics=statistics,
            preview=preview,
        )

        return dataset_inspection
