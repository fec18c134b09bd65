from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.maintenance_rollout_create_request_labels import (
        MaintenanceRolloutCreateRequestLabels,
    )


T = TypeVar("T", bound="MaintenanceRolloutCreateRequest")


@_attrs_define
class MaintenanceRolloutCreateRequest:
    """MaintenanceRolloutCreateRequest"""

    name: str
    cluster: str
    labels: MaintenanceRolloutCreateRequestLabels | Unset = UNSET
    argv: list[str] | Unset = UNSET
    image: str | Unset = ""
    run_within: int | Unset = 600
    burn_in: bool | Unset = True
    parallel: int | Unset = 1
    domain_label: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        cluster = self.cluster

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        argv: list[str] | Unset = UNSET
        if not isinstance(self.argv, Unset):
            argv = self.argv

        image = self.image

        run_within = self.run_within

        burn_in = self.burn_in

        parallel = self.parallel

        domain_label = self.domain_label

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "cluster": cluster,
            }
        )
        if labels is not UNSET:
            field_dict["labels"] = labels
        if argv is not UNSET:
            field_dict["argv"] = argv
        if image is not UNSET:
            field_dict["image"] = image
        if run_within is not UNSET:
            field_dict["run_within"] = run_within
        if burn_in is not UNSET:
            field_dict["burn_in"] = burn_in
        if parallel is not UNSET:
            field_dict["parallel"] = parallel
        if domain_label is not UNSET:
            field_dict["domain_label"] = domain_label

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.maintenance_rollout_create_request_labels import (
            MaintenanceRolloutCreateRequestLabels,
        )

        d = dict(src_dict)
        name = d.pop("name")

        cluster = d.pop("cluster")

        _labels = d.pop("labels", UNSET)
        labels: MaintenanceRolloutCreateRequestLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = MaintenanceRolloutCreateRequestLabels.from_dict(_labels)

        argv = cast(list[str], d.pop("argv", UNSET))

        image = d.pop("image", UNSET)

        run_within = d.pop("run_within", UNSET)

        burn_in = d.pop("burn_in", UNSET)

        parallel = d.pop("parallel", UNSET)

        domain_label = d.pop("domain_label", UNSET)

        maintenance_rollout_create_request = cls(
            name=name,
            cluster=cluster,
            labels=labels,
            argv=argv,
            image=image,
            run_within=run_within,
            burn_in=burn_in,
            parallel=parallel,
            domain_label=domain_label,
        )

        return maintenance_rollout_create_request
