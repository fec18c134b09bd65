from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.weight_download_create_request_labels import (
        WeightDownloadCreateRequestLabels,
    )


T = TypeVar("T", bound="WeightDownloadCreateRequest")


@_attrs_define
class WeightDownloadCreateRequest:
    """The request for something that a team will own."""

    model_version: str
    cluster: str
    team: str | Unset = UNSET
    nodes: list[str] | Unset = UNSET
    chip: str | Unset = UNSET
    labels: WeightDownloadCreateRequestLabels | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        model_version = self.model_version

        cluster = self.cluster

        team = self.team

        nodes: list[str] | Unset = UNSET
        if not isinstance(self.nodes, Unset):
            nodes = self.nodes

        chip = self.chip

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "model_version": model_version,
                "cluster": cluster,
            }
        )
        if team is not UNSET:
            field_dict["team"] = team
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if chip is not UNSET:
            field_dict["chip"] = chip
        if labels is not UNSET:
            field_dict["labels"] = labels

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.weight_download_create_request_labels import (
            WeightDownloadCreateRequestLabels,
        )

        d = dict(src_dict)
        model_version = d.pop("model_version")

        cluster = d.pop("cluster")

        team = d.pop("team", UNSET)

        nodes = cast(list[str], d.pop("nodes", UNSET))

        chip = d.pop("chip", UNSET)

        _labels = d.pop("labels", UNSET)
        labels: WeightDownloadCreateRequestLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = WeightDownloadCreateRequestLabels.from_dict(_labels)

        weight_download_create_request = cls(
            model_version=model_version,
            cluster=cluster,
            team=team,
            nodes=nodes,
            chip=chip,
            labels=labels,
        )

        return weight_download_create_request
