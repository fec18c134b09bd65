from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.phase_enum import PhaseEnum, check_phase_enum

T = TypeVar("T", bound="RolloutStatus")


@_attrs_define
class RolloutStatus:
    """RolloutStatus"""

    phase: PhaseEnum
    revision: int
    serving_revision: int
    replicas: int
    updated_replicas: int
    updated_ready_replicas: int
    old_replicas: int
    old_ready_replicas: int
    max_surge: int
    max_unavailable: int

    def to_dict(self) -> dict[str, Any]:
        phase: str = self.phase

        revision = self.revision

        serving_revision = self.serving_revision

        replicas = self.replicas

        updated_replicas = self.updated_replicas

        updated_ready_replicas = self.updated_ready_replicas

        old_replicas = self.old_replicas

        old_ready_replicas = self.old_ready_replicas

        max_surge = self.max_surge

        max_unavailable = self.max_unavailable

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "phase": phase,
                "revision": revision,
                "serving_revision": serving_revision,
                "replicas": replicas,
                "updated_replicas": updated_replicas,
                "updated_ready_replicas": updated_ready_replicas,
                "old_replicas": old_replicas,
                "old_ready_replicas": old_ready_replicas,
                "max_surge": max_surge,
                "max_unavailable": max_unavailable,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        phase = check_phase_enum(d.pop("phase"))

        revision = d.pop("revision")

        serving_revision = d.pop("serving_revision")

        replicas = d.pop("replicas")

        updated_replicas = d.pop("updated_replicas")

        updated_ready_replicas = d.pop("updated_ready_replicas")

        old_replicas = d.pop("old_replicas")

        old_ready_replicas = d.pop("old_ready_replicas")

        max_surge = d.pop("max_surge")

        max_unavailable = d.pop("max_unavailable")

        rollout_status = cls(
            phase=phase,
            revision=revision,
            serving_revision=serving_revision,
            replicas=replicas,
            updated_replicas=updated_replicas,
            updated_ready_replicas=updated_ready_replicas,
            old_replicas=old_replicas,
            old_ready_replicas=old_ready_replicas,
            max_surge=max_surge,
            max_unavailable=max_unavailable,
        )

        return rollout_status
