from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.caveat import Caveat, check_caveat
from ..models.support import Support, check_support

T = TypeVar("T", bound="CatalogClaim")


@_attrs_define
class CatalogClaim:
    """CatalogClaim"""

    engine: str
    title: str
    status: Support
    versions: str
    methods: list[str]
    evidence: list[str]
    caveat: Caveat | None
    installed: bool
    renders: str
    renderable: bool
    refusal: str

    def to_dict(self) -> dict[str, Any]:
        engine = self.engine

        title = self.title

        status: str = self.status

        versions = self.versions

        methods = self.methods

        evidence = self.evidence

        caveat: None | str
        if isinstance(self.caveat, str):
            caveat = self.caveat
        else:
            caveat = self.caveat

        installed = self.installed

        renders = self.renders

        renderable = self.renderable

        refusal = self.refusal

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "engine": engine,
                "title": title,
                "status": status,
                "versions": versions,
                "methods": methods,
                "evidence": evidence,
                "caveat": caveat,
                "installed": installed,
                "renders": renders,
                "renderable": renderable,
                "refusal": refusal,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        engine = d.pop("engine")

        title = d.pop("title")

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

        installed = d.pop("installed")

        renders = d.pop("renders")

        renderable = d.pop("renderable")

        refusal = d.pop("refusal")

        catalog_claim = cls(
            engine=engine,
            title=title,
            status=status,
            versions=versions,
            methods=methods,
            evidence=evidence,
            caveat=caveat,
            installed=installed,
            renders=renders,
            renderable=renderable,
            refusal=refusal,
        )

        return catalog_claim
