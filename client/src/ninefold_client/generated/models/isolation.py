from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.isolation_state_enum import IsolationStateEnum, check_isolation_state_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.burn_in_evidence import BurnInEvidence
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="Isolation")


@_attrs_define
class Isolation:
    """Isolation"""

    uid: str
    cluster: str
    node: ObjectReference
    card: None | ObjectReference
    state: IsolationStateEnum
    reason: Reason
    began_at: datetime.datetime
    evidence: BurnInEvidence
    actor_name: str | Unset = UNSET
    fault: None | str | Unset = UNSET
    drained_at: datetime.datetime | None | Unset = UNSET
    burn_ins: int | Unset = UNSET
    tested_at: datetime.datetime | None | Unset = UNSET
    proved_at: datetime.datetime | None | Unset = UNSET
    ended_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.object_reference import ObjectReference

        uid = self.uid

        cluster = self.cluster

        node = self.node.to_dict()

        card: dict[str, Any] | None
        if isinstance(self.card, ObjectReference):
            card = self.card.to_dict()
        else:
            card = self.card

        state: str = self.state

        reason = self.reason.to_dict()

        began_at = self.began_at.isoformat()

        evidence = self.evidence.to_dict()

        actor_name = self.actor_name

        fault: None | str | Unset
        if isinstance(self.fault, Unset):
            fault = UNSET
        else:
            fault = self.fault

        drained_at: None | str | Unset
        if isinstance(self.drained_at, Unset):
            drained_at = UNSET
        elif isinstance(self.drained_at, datetime.datetime):
            drained_at = self.drained_at.isoformat()
        else:
            drained_at = self.drained_at

        burn_ins = self.burn_ins

        tested_at: None | str | Unset
        if isinstance(self.tested_at, Unset):
            tested_at = UNSET
        elif isinstance(self.tested_at, datetime.datetime):
            tested_at = self.tested_at.isoformat()
        else:
            tested_at = self.tested_at

        proved_at: None | str | Unset
        if isinstance(self.proved_at, Unset):
            proved_at = UNSET
        elif isinstance(self.proved_at, datetime.datetime):
            proved_at = self.proved_at.isoformat()
        else:
            proved_at = self.proved_at

        ended_at: None | str | Unset
        if isinstance(self.ended_at, Unset):
            ended_at = UNSET
        elif isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "cluster": cluster,
                "node": node,
                "card": card,
                "state": state,
                "reason": reason,
                "began_at": began_at,
                "evidence": evidence,
            }
        )
        if actor_name is not UNSET:
            field_dict["actor_name"] = actor_name
        if fault is not UNSET:
            field_dict["fault"] = fault
        if drained_at is not UNSET:
            field_dict["drained_at"] = drained_at
        if burn_ins is not UNSET:
            field_dict["burn_ins"] = burn_ins
        if tested_at is not UNSET:
            field_dict["tested_at"] = tested_at
        if proved_at is not UNSET:
            field_dict["proved_at"] = proved_at
        if ended_at is not UNSET:
            field_dict["ended_at"] = ended_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.burn_in_evidence import BurnInEvidence
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        cluster = d.pop("cluster")

        node = ObjectReference.from_dict(d.pop("node"))

        def _parse_card(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                card_type_0 = ObjectReference.from_dict(data)

                return card_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        card = _parse_card(d.pop("card"))

        state = check_isolation_state_enum(d.pop("state"))

        reason = Reason.from_dict(d.pop("reason"))

        began_at = datetime.datetime.fromisoformat(d.pop("began_at"))

        evidence = BurnInEvidence.from_dict(d.pop("evidence"))

        actor_name = d.pop("actor_name", UNSET)

        def _parse_fault(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        fault = _parse_fault(d.pop("fault", UNSET))

        def _parse_drained_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                drained_at_type_0 = datetime.datetime.fromisoformat(data)

                return drained_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        drained_at = _parse_drained_at(d.pop("drained_at", UNSET))

        burn_ins = d.pop("burn_ins", UNSET)

        def _parse_tested_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tested_at_type_0 = datetime.datetime.fromisoformat(data)

                return tested_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        tested_at = _parse_tested_at(d.pop("tested_at", UNSET))

        def _parse_proved_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                proved_at_type_0 = datetime.datetime.fromisoformat(data)

                return proved_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        proved_at = _parse_proved_at(d.pop("proved_at", UNSET))

        def _parse_ended_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        ended_at = _parse_ended_at(d.pop("ended_at", UNSET))

        isolation = cls(
            uid=uid,
            cluster=cluster,
            node=node,
            card=card,
            state=state,
            reason=reason,
            began_at=began_at,
            evidence=evidence,
            actor_name=actor_name,
            fault=fault,
            drained_at=drained_at,
            burn_ins=burn_ins,
            tested_at=tested_at,
            proved_at=proved_at,
            ended_at=ended_at,
        )

        return isolation
