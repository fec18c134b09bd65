from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.binding_enum import BindingEnum, check_binding_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.kubernetes_cluster_options_request import (
        KubernetesClusterOptionsRequest,
    )
    from ..models.volcano_cluster_options_request import VolcanoClusterOptionsRequest


T = TypeVar("T", bound="PatchedClusterChangeRequest")


@_attrs_define
class PatchedClusterChangeRequest:
    """PatchedClusterChangeRequest"""

    options: KubernetesClusterOptionsRequest | Unset | VolcanoClusterOptionsRequest = UNSET
    binding: BindingEnum | Unset = UNSET
    kubeconfig: str | Unset = UNSET
    although_unfit: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        from ..models.kubernetes_cluster_options_request import (
            KubernetesClusterOptionsRequest,
        )

        options: dict[str, Any] | Unset
        if isinstance(self.options, Unset):
            options = UNSET
        elif isinstance(self.options, KubernetesClusterOptionsRequest):
            options = self.options.to_dict()
        else:
            options = self.options.to_dict()

        binding: str | Unset = UNSET
        if not isinstance(self.binding, Unset):
            binding = self.binding

        kubeconfig = self.kubeconfig

        although_unfit = self.although_unfit

        field_dict: dict[str, Any] = {}

        field_dict.update({})
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
        from ..models.volcano_cluster_options_request import (
            VolcanoClusterOptionsRequest,
        )

        d = dict(src_dict)

        def _parse_options(
            data: object,
        ) -> KubernetesClusterOptionsRequest | Unset | VolcanoClusterOptionsRequest:
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                options_type_0 = KubernetesClusterOptionsRequest.from_dict(data)

                return options_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            options_type_1 = VolcanoClusterOptionsRequest.from_dict(data)

            return options_type_1

        options = _parse_options(d.pop("options", UNSET))

        _binding = d.pop("binding", UNSET)
        binding: BindingEnum | Unset
        if isinstance(_binding, Unset):
            binding = UNSET
        else:
            binding = check_binding_enum(_binding)

        kubeconfig = d.pop("kubeconfig", UNSET)

        although_unfit = d.pop("although_unfit", UNSET)

        patched_cluster_change_request = cls(
            options=options,
            binding=binding,
            kubeconfig=kubeconfig,
            although_unfit=although_unfit,
        )

        return patched_cluster_change_request
