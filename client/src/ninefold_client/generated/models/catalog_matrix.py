from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.chip_kind import ChipKind, check_chip_kind

if TYPE_CHECKING:
    from ..models.catalog_claim import CatalogClaim


T = TypeVar("T", bound="CatalogMatrix")


@_attrs_define
class CatalogMatrix:
    """One vendor's chips. A square without claims is unknown."""

    vendor: str
    title: str
    kind: ChipKind | None
    train: list[CatalogClaim]
    serve: list[CatalogClaim]
    quantize: list[CatalogClaim]

    def to_dict(self) -> dict[str, Any]:
        vendor = self.vendor

        title = self.title

        kind: None | str
        if isinstance(self.kind, str):
            kind = self.kind
        else:
            kind = self.kind

        train = []
        for train_item_data in self.train:
            train_item = train_item_data.to_dict()
            train.append(train_item)

        serve = []
        for serve_item_data in self.serve:
            serve_item = serve_item_data.to_dict()
            serve.append(serve_item)

        quantize = []
        for quantize_item_data in self.quantize:
            quantize_item = quantize_item_data.to_dict()
            quantize.append(quantize_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "vendor": vendor,
                "title": title,
                "kind": kind,
                "train": train,
                "serve": serve,
                "quantize": quantize,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.catalog_claim import CatalogClaim

        d = dict(src_dict)
        vendor = d.pop("vendor")

        title = d.pop("title")

        def _parse_kind(data: object) -> ChipKind | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                kind_type_0 = check_chip_kind(data)

                return kind_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChipKind | None, data)

        kind = _parse_kind(d.pop("kind"))

        train = []
        _train = d.pop("train")
        for train_item_data in _train:
            train_item = CatalogClaim.from_dict(train_item_data)

            train.append(train_item)

        serve = []
        _serve = d.pop("serve")
        for serve_item_data in _serve:
            serve_item = CatalogClaim.from_dict(serve_item_data)

            serve.append(serve_item)

        quantize = []
        _quantize = d.pop("quantize")
        for quantize_item_data in _quantize:
            quantize_item = CatalogClaim.from_dict(quantize_item_data)

            quantize.append(quantize_item)

        catalog_matrix = cls(
            vendor=vendor,
            title=title,
            kind=kind,
            train=train,
            serve=serve,
            quantize=quantize,
        )

        return catalog_matrix
