from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.catalog_task import CatalogTask, check_catalog_task
from ..models.caveat import Caveat, check_caveat
from ..models.support import Support, check_support

T = TypeVar("T", bound="CatalogCell")


@_attrs_define
class CatalogCell:
    """One task by one engine on one vendor's chips."""

    task: CatalogTask
    vendor: str
    engine: str
    status: Support
    versions: str
    methods: list[str]
    evidence: list[str]
    caveat: Caveat | None

    def to_dict(self) -> dict[str, Any]:
        task: str = self.task

        vendor = self.vendor

        engine = self.engine

        status: str = self.status

        versions = self.versions

        methods = self.methods

        evidence = self.evidence

        caveat: None | str
        if isinstance(self.caveat, str):
            caveat = self.caveat
        else:
            caveat = self.caveat

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "task": task,
                "vendor": vendor,
                "engine": engine,
                "status": status,
                "versions": versions,
                "methods": methods,
                "evidence": evidence,
                "caveat": caveat,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        task = check_catalog_task(d.pop("task"))

        vendor = d.pop("vendor")

        engine = d.pop("engine")

        status = check_support(d.pop("status"))

        versions = d.pop("versions")

        methods = cast(list[str], d.pop("methods"))

        evidence = cast(list[str], d.pop("evidence"))

        def _parse_caveat(data: object) -> Caveat | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                caveat_type_0 = check_caveat(data)

                return caveat_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Caveat | None, data)

        caveat = _parse_caveat(d.pop("caveat"))

        catalog_cell = cls(
            task=task,
            vendor=vendor,
            engine=engine,
            status=status,
            versions=versions,
            methods=methods,
            evidence=evidence,
            caveat=caveat,
        )

        return catalog_cell
