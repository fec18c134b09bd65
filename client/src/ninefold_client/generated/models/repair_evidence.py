from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.fault_record import FaultRecord


T = TypeVar("T", bound="RepairEvidence")


@_attrs_define
class RepairEvidence:
    """All that a repair ticket needs; card, serial and chip are absent for a whole node."""

    isolation: str
    cluster: str
    cluster_uid: str
    node: str
    burn_in: str
    card: int | Unset = UNSET
    serial: str | Unset = UNSET
    chip: str | Unset = UNSET
    fault: FaultRecord | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        isolation = self.isolation

        cluster = self.cluster

        cluster_uid = self.cluster_uid

        node = self.node

        burn_in = self.burn_in

        card = self.card

        serial = self.serial

        chip = self.chip

        fault: dict[str, Any] | Unset = UNSET
        if not isinstance(self.fault, Unset):
            fault = self.fault.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "isolation": isolation,
                "cluster": cluster,
                "cluster_uid": cluster_uid,
                "node": node,
                "burn_in": burn_in,
            }
        )
        if card is not UNSET:
            field_dict["card"] = card
        if serial is not UNSET:
            field_dict["serial"] = serial
        if chip is not UNSET:
            field_dict["chip"] = chip
        if fault is not UNSET:
            field_dict["fault"] = fault

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.fault_record import FaultRecord

        d = dict(src_dict)
        isolation = d.pop("isolation")

        cluster = d.pop("cluster")

        cluster_uid = d.pop("cluster_uid")

        node = d.pop("node")

        burn_in = d.pop("burn_in")

        card = d.pop("card", UNSET)

        serial = d.pop("serial", UNSET)

        chip = d.pop("chip", UNSET)

        _fault = d.pop("fault", UNSET)
        fault: FaultRecord | Unset
        if isinstance(_fault, Unset):
            fault = UNSET
        else:
            fault = FaultRecord.from_dict(_fault)

        repair_evidence = cls(
            isolation=isolation,
            cluster=cluster,
            cluster_uid=cluster_uid,
            node=node,
            burn_in=burn_in,
            card=card,
            serial=serial,
            chip=chip,
            fault=fault,
        )

        return repair_evidence
