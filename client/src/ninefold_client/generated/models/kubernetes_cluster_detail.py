from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.binding_enum import BindingEnum, check_binding_enum
from ..models.kubernetes_cluster_detail_kind import (
    KubernetesClusterDetailKind,
    check_kubernetes_cluster_detail_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_check import ClusterCheck
    from ..models.kubernetes_cluster_options import KubernetesClusterOptions
    from ..models.reason import Reason


T = TypeVar("T", bound="KubernetesClusterDetail")


@_attrs_define
class KubernetesClusterDetail:
    """For whoever operates the fleet."""

    uid: str
    name: str
    kind: KubernetesClusterDetailKind
    isolation: Reason
    error: Reason
    nodes: int
    cards: int
    options: KubernetesClusterOptions
    checks: list[ClusterCheck]
    binding: BindingEnum | Unset = UNSET
    last_seen_at: datetime.datetime | None | Unset = UNSET
    reachable_at: datetime.datetime | None | Unset = UNSET
    version: str | Unset = UNSET
    checked_at: datetime.datetime | None | Unset = UNSET
    created_by_name: str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        name = self.name

        kind: str = self.kind

        isolation = self.isolation.to_dict()

        error = self.error.to_dict()

        nodes = self.nodes

        cards = self.cards

        options = self.options.to_dict()

        checks = []
        for checks_item_data in self.checks:
            checks_item = checks_item_data.to_dict()
            checks.append(checks_item)

        binding: str | Unset = UNSET
        if not isinstance(self.binding, Unset):
            binding = self.binding

        last_seen_at: None | str | Unset
        if isinstance(self.last_seen_at, Unset):
            last_seen_at = UNSET
        elif isinstance(self.last_seen_at, datetime.datetime):
            last_seen_at = self.last_seen_at.isoformat()
        else:
            last_seen_at = self.last_seen_at

        reachable_at: None | str | Unset
        if isinstance(self.reachable_at, Unset):
            reachable_at = UNSET
        elif isinstance(self.reachable_at, datetime.datetime):
            reachable_at = self.reachable_at.isoformat()
        else:
            reachable_at = self.reachable_at

        version = self.version

        checked_at: None | str | Unset
        if isinstance(self.checked_at, Unset):
            checked_at = UNSET
        elif isinstance(self.checked_at, datetime.datetime):
            checked_at = self.checked_at.isoformat()
        else:
            checked_at = self.checked_at

        created_by_name = self.created_by_name

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "kind": kind,
                "isolation": isolation,
                "error": error,
                "nodes": nodes,
                "cards": cards,
                "options": options,
                "checks": checks,
            }
        )
        if binding is not UNSET:
            field_dict["binding"] = binding
        if last_seen_at is not UNSET:
            field_dict["last_seen_at"] = last_seen_at
        if reachable_at is not UNSET:
            field_dict["reachable_at"] = reachable_at
        if version is not UNSET:
            field_dict["version"] = version
        if checked_at is not UNSET:
            field_dict["checked_at"] = checked_at
        if created_by_name is not UNSET:
            field_dict["created_by_name"] = created_by_name

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_check import ClusterCheck
        from ..models.kubernetes_cluster_options import KubernetesClusterOptions
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        kind = check_kubernetes_cluster_detail_kind(d.pop("kind"))

        isolation = Reason.from_dict(d.pop("isolation"))

        error = Reason.from_dict(d.pop("error"))

        nodes = d.pop("nodes")

        cards = d.pop("cards")

        options = KubernetesClusterOptions.from_dict(d.pop("options"))

        checks = []
        _checks = d.pop("checks")
        for checks_item_data in _checks:
            checks_item = ClusterCheck.from_dict(checks_item_data)

            checks.append(checks_item)

        _binding = d.pop("binding", UNSET)
        binding: BindingEnum | Unset
        if isinstance(_binding, Unset):
            binding = UNSET
        else:
            binding = check_binding_enum(_binding)

        def _parse_last_seen_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_seen_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_seen_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_seen_at = _parse_last_seen_at(d.pop("last_seen_at", UNSET))

        def _parse_reachable_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                reachable_at_type_0 = datetime.datetime.fromisoformat(data)

                return reachable_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        reachable_at = _parse_reachable_at(d.pop("reachable_at", UNSET))

        version = d.pop("version", UNSET)

        def _parse_checked_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checked_at_type_0 = datetime.datetime.fromisoformat(data)

                return checked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        checked_at = _parse_checked_at(d.pop("checked_at", UNSET))

        created_by_name = d.pop("created_by_name", UNSET)

        kubernetes_cluster_detail = cls(
            uid=uid,
            name=name,
            kind=kind,
            isolation=isolation,
            error=error,
            nodes=nodes,
            cards=cards,
            options=options,
            checks=checks,
            binding=binding,
            last_seen_at=last_seen_at,
            reachable_at=reachable_at,
            version=version,
            checked_at=checked_at,
            created_by_name=created_by_name,
        )

        return kubernetes_cluster_detail
