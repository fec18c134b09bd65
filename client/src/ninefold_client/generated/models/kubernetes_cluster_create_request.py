from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.binding_enum import BindingEnum, check_binding_enum
from ..models.kubernetes_cluster_create_request_kind import (
    KubernetesClusterCreateRequestKind,
    check_kubernetes_cluster_create_request_kind,
)
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.kubernetes_cluster_options_request import (
        KubernetesClusterOptionsRequest,
    )


T = TypeVar("T", bound="KubernetesClusterCreateRequest")


@_attrs_define
class KubernetesClusterCreateRequest:
    """KubernetesClusterCreateRequest"""

    name: str
    kind: KubernetesClusterCreateRequestKind
    options: KubernetesClusterOptionsRequest | Unset = UNSET
    binding: BindingEnum | Unset = UNSET
    kubeconfig: str | Unset = UNSET
    although_unfit: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        kind: str = self.kind

        options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.options, Unset):
            options = self.options.to_dict()

        binding: str | Unset = UNSET
        if not isinstance(self.binding, Unset):
            binding = self.binding

        kubeconfig = self.kubeconfig

        although_unfit = self.although_unfit

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "kind": kind,
            }
        )
        if options is not UNSET:
            field_dict["options"] = options
        if binding is not UNSET:
            field_dict["binding"] = binding
        if kubeconfig is not UNSET:
            field_dict["kubeconfig"] = kubeconfig
        if although_unfit is not UNSET:
            field_dict["although_unfit"] = although_unfit

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.kubernetes_cluster_options_request import (
            KubernetesClusterOptionsRequest,
        )

        d = dict(src_dict)
        name = d.pop("name")

        kind = check_kubernetes_cluster_create_request_kind(d.pop("kind"))

        _options = d.pop("options", UNSET)
        options: KubernetesClusterOptionsRequest | Unset
        if isinstance(_options, Unset):
            options = UNSET
        else:
            options = KubernetesClusterOptionsRequest.from_dict(_options)

        _binding = d.pop("binding", UNSET)
        binding: BindingEnum | Unset
        if isinstance(_binding, Unset):
            binding = UNSET
        else:
            binding = check_binding_enum(_binding)

        kubeconfig = d.pop("kubeconfig", UNSET)

        although_unfit = d.pop("although_unfit", UNSET)

        kubernetes_cluster_create_request = cls(
            name=name,
            kind=kind,
            options=options,
            binding=binding,
            kubeconfig=kubeconfig,
            although_unfit=although_unfit,
        )

        return kubernetes_cluster_create_request
