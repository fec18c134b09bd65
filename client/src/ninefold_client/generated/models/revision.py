from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.operations_enum import OperationsEnum, check_operations_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.deployment_backend import DeploymentBackend
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason
    from ..models.revision_adapter import RevisionAdapter
    from ..models.serve_spec import ServeSpec


T = TypeVar("T", bound="Revision")


@_attrs_define
class Revision:
    """Revision"""

    uid: str
    number: int
    model_version: ObjectReference
    engine: str
    spec: ServeSpec
    operations: list[OperationsEnum]
    chips: list[str]
    nodes: int
    adapters: list[RevisionAdapter]
    failure_reason: Reason
    created_by: str
    created_at: datetime.datetime
    backends: list[DeploymentBackend]
    cards: int | Unset = UNSET
    failed_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        uid = self.uid

        number = self.number

        model_version = self.model_version.to_dict()

        engine = self.engine

        spec = self.spec.to_dict()

        operations = []
        for operations_item_data in self.operations:
            operations_item: str = operations_item_data
            operations.append(operations_item)

        chips = self.chips

        nodes = self.nodes

        adapters = []
        for adapters_item_data in self.adapters:
            adapters_item = adapters_item_data.to_dict()
            adapters.append(adapters_item)

        failure_reason = self.failure_reason.to_dict()

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        backends = []
        for backends_item_data in self.backends:
            backends_item = backends_item_data.to_dict()
            backends.append(backends_item)

        cards = self.cards

        failed_at: None | str | Unset
        if isinstance(self.failed_at, Unset):
            failed_at = UNSET
        elif isinstance(self.failed_at, datetime.datetime):
            failed_at = self.failed_at.isoformat()
        else:
            failed_at = self.failed_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "number": number,
                "model_version": model_version,
                "engine": engine,
                "spec": spec,
                "operations": operations,
                "chips": chips,
                "nodes": nodes,
                "adapters": adapters,
                "failure_reason": failure_reason,
                "created_by": created_by,
                "created_at": created_at,
                "backends": backends,
            }
        )
        if cards is not UNSET:
            field_dict["cards"] = cards
        if failed_at is not UNSET:
            field_dict["failed_at"] = failed_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.deployment_backend import DeploymentBackend
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason
        from ..models.revision_adapter import RevisionAdapter
        from ..models.serve_spec import ServeSpec

        d = dict(src_dict)
        uid = d.pop("uid")

        number = d.pop("number")

        model_version = ObjectReference.from_dict(d.pop("model_version"))

        engine = d.pop("engine")

        spec = ServeSpec.from_dict(d.pop("spec"))

        operations = []
        _operations = d.pop("operations")
        for operations_item_data in _operations:
            operations_item = check_operations_enum(operations_item_data)

            operations.append(operations_item)

        chips = cast(list[str], d.pop("chips"))

        nodes = d.pop("nodes")

        adapters = []
        _adapters = d.pop("adapters")
        for adapters_item_data in _adapters:
            adapters_item = RevisionAdapter.from_dict(adapters_item_data)

            adapters.append(adapters_item)

        failure_reason = Reason.from_dict(d.pop("failure_reason"))

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        backends = []
        _backends = d.pop("backends")
        for backends_item_data in _backends:
            backends_item = DeploymentBackend.from_dict(backends_item_data)

            backends.append(backends_item)

        cards = d.pop("cards", UNSET)

        def _parse_failed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failed_at_type_0 = datetime.datetime.fromisoformat(data)

                return failed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        failed_at = _parse_failed_at(d.pop("failed_at", UNSET))

        revision = cls(
            uid=uid,
            number=number,
            model_version=model_version,
            engine=engine,
            spec=spec,
            operations=operations,
            chips=chips,
            nodes=nodes,
            adapters=adapters,
            failure_reason=failure_reason,
            created_by=created_by,
            created_at=created_at,
            backends=backends,
            cards=cards,
            failed_at=failed_at,
        )

        return revision
