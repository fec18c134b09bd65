from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.pull_policy_enum import PullPolicyEnum, check_pull_policy_enum
from ..models.reach_enum import ReachEnum, check_reach_enum
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dra_device_class_request import DraDeviceClassRequest
    from ..models.egress_rule_request import EgressRuleRequest
    from ..models.host_mount_request import HostMountRequest
    from ..models.shared_volume_request import SharedVolumeRequest


T = TypeVar("T", bound="KubernetesClusterOptionsRequest")


@_attrs_define
class KubernetesClusterOptionsRequest:
    """KubernetesClusterOptionsRequest"""

    in_cluster: bool | Unset = False
    namespace: str | Unset = "ninefold"
    image: str | Unset = ""
    python: str | Unset = "python3"
    engines: str | Unset = ""
    mounts: list[HostMountRequest] | Unset = UNSET
    store: None | SharedVolumeRequest | Unset = UNSET
    cache: None | SharedVolumeRequest | Unset = UNSET
    cache_size: int | Unset = 536870912000
    work: None | SharedVolumeRequest | Unset = UNSET
    pull_policy: PullPolicyEnum | Unset = "IfNotPresent"
    pull_secret: str | Unset = ""
    shared_memory: int | Unset = 8589934592
    reach: ReachEnum | Unset = "pod"
    run_as: int | Unset = 65532
    read_only_root: bool | Unset = True
    cpu_cards: int | Unset = 0
    memory_per_card: int | Unset = 68719476736
    ephemeral_storage: int | Unset = 107374182400
    gateway_cidrs: list[str] | Unset = UNSET
    egress: list[EgressRuleRequest] | Unset = UNSET
    device_classes: list[DraDeviceClassRequest] | Unset = UNSET
    control_url: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        from ..models.shared_volume_request import SharedVolumeRequest

        in_cluster = self.in_cluster

        namespace = self.namespace

        image = self.image

        python = self.python

        engines = self.engines

        mounts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.mounts, Unset):
            mounts = []
            for mounts_item_data in self.mounts:
                mounts_item = mounts_item_data.to_dict()
                mounts.append(mounts_item)

        store: dict[str, Any] | None | Unset
        if isinstance(self.store, Unset):
            store = UNSET
        elif isinstance(self.store, SharedVolumeRequest):
            store = self.store.to_dict()
        else:
            store = self.store

        cache: dict[str, Any] | None | Unset
        if isinstance(self.cache, Unset):
            cache = UNSET
        elif isinstance(self.cache, SharedVolumeRequest):
            cache = self.cache.to_dict()
        else:
            cache = self.cache

        cache_size = self.cache_size

        work: dict[str, Any] | None | Unset
        if isinstance(self.work, Unset):
            work = UNSET
        elif isinstance(self.work, SharedVolumeRequest):
            work = self.work.to_dict()
        else:
            work = self.work

        pull_policy: str | Unset = UNSET
        if not isinstance(self.pull_policy, Unset):
            pull_policy = self.pull_policy

        pull_secret = self.pull_secret

        shared_memory = self.shared_memory

        reach: str | Unset = UNSET
        if not isinstance(self.reach, Unset):
            reach = self.reach

        run_as = self.run_as

        read_only_root = self.read_only_root

        cpu_cards = self.cpu_cards

        memory_per_card = self.memory_per_card

        ephemeral_storage = self.ephemeral_storage

        gateway_cidrs: list[str] | Unset = UNSET
        if not isinstance(self.gateway_cidrs, Unset):
            gateway_cidrs = self.gateway_cidrs

        egress: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.egress, Unset):
            egress = []
            for egress_item_data in self.egress:
                egress_item = egress_item_data.to_dict()
                egress.append(egress_item)

        device_classes: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.device_classes, Unset):
            device_classes = []
            for device_classes_item_data in self.device_classes:
                device_classes_item = device_classes_item_data.to_dict()
                device_classes.append(device_classes_item)

        control_url = self.control_url

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if in_cluster is not UNSET:
            field_dict["in_cluster"] = in_cluster
        if namespace is not UNSET:
            field_dict["namespace"] = namespace
        if image is not UNSET:
            field_dict["image"] = image
        if python is not UNSET:
            field_dict["python"] = python
        if engines is not UNSET:
            field_dict["engines"] = engines
        if mounts is not UNSET:
            field_dict["mounts"] = mounts
        if store is not UNSET:
            field_dict["store"] = store
        if cache is not UNSET:
            field_dict["cache"] = cache
        if cache_size is not UNSET:
            field_dict["cache_size"] = cache_size
        if work is not UNSET:
            field_dict["work"] = work
        if pull_policy is not UNSET:
            field_dict["pull_policy"] = pull_policy
        if pull_secret is not UNSET:
            field_dict["pull_secret"] = pull_secret
        if shared_memory is not UNSET:
            field_dict["shared_memory"] = shared_memory
        if reach is not UNSET:
            field_dict["reach"] = reach
        if run_as is not UNSET:
            field_dict["run_as"] = run_as
        if read_only_root is not UNSET:
            field_dict["read_only_root"] = read_only_root
        if cpu_cards is not UNSET:
            field_dict["cpu_cards"] = cpu_cards
        if memory_per_card is not UNSET:
            field_dict["memory_per_card"] = memory_per_card
        if ephemeral_storage is not UNSET:
            field_dict["ephemeral_storage"] = ephemeral_storage
        if gateway_cidrs is not UNSET:
            field_dict["gateway_cidrs"] = gateway_cidrs
        if egress is not UNSET:
            field_dict["egress"] = egress
        if device_classes is not UNSET:
            field_dict["device_classes"] = device_classes
        if control_url is not UNSET:
            field_dict["control_url"] = control_url

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dra_device_class_request import DraDeviceClassRequest
        from ..models.egress_rule_request import EgressRuleRequest
        from ..models.host_mount_request import HostMountRequest
        from ..models.shared_volume_request import SharedVolumeRequest

        d = dict(src_dict)
        in_cluster = d.pop("in_cluster", UNSET)

        namespace = d.pop("namespace", UNSET)

        image = d.pop("image", UNSET)

        python = d.pop("python", UNSET)

        engines = d.pop("engines", UNSET)

        _mounts = d.pop("mounts", UNSET)
        mounts: list[HostMountRequest] | Unset = UNSET
        if _mounts is not UNSET:
            mounts = []
            for mounts_item_data in _mounts:
                mounts_item = HostMountRequest.from_dict(mounts_item_data)

                mounts.append(mounts_item)

        def _parse_store(data: object) -> None | SharedVolumeRequest | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                store_type_0 = SharedVolumeRequest.from_dict(data)

                return store_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharedVolumeRequest | Unset, data)

        store = _parse_store(d.pop("store", UNSET))

        def _parse_cache(data: object) -> None | SharedVolumeRequest | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cache_type_0 = SharedVolumeRequest.from_dict(data)

                return cache_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharedVolumeRequest | Unset, data)

        cache = _parse_cache(d.pop("cache", UNSET))

        cache_size = d.pop("cache_size", UNSET)

        def _parse_work(data: object) -> None | SharedVolumeRequest | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                work_type_0 = SharedVolumeRequest.from_dict(data)

                return work_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SharedVolumeRequest | Unset, data)

        work = _parse_work(d.pop("work", UNSET))

        _pull_policy = d.pop("pull_policy", UNSET)
        pull_policy: PullPolicyEnum | Unset
        if isinstance(_pull_policy, Unset):
            pull_policy = UNSET
        else:
            pull_policy = check_pull_policy_enum(_pull_policy)

        pull_secret = d.pop("pull_secret", UNSET)

        shared_memory = d.pop("shared_memory", UNSET)

        _reach = d.pop("reach", UNSET)
        reach: ReachEnum | Unset
        if isinstance(_reach, Unset):
            reach = UNSET
        else:
            reach = check_reach_enum(_reach)

        run_as = d.pop("run_as", UNSET)

        read_only_root = d.pop("read_only_root", UNSET)

        cpu_cards = d.pop("cpu_cards", UNSET)

        memory_per_card = d.pop("memory_per_card", UNSET)

        ephemeral_storage = d.pop("ephemeral_storage", UNSET)

        gateway_cidrs = cast(list[str], d.pop("gateway_cidrs", UNSET))

        _egress = d.pop("egress", UNSET)
        egress: list[EgressRuleRequest] | Unset = UNSET
        if _egress is not UNSET:
            egress = []
            for egress_item_data in _egress:
                egress_item = EgressRuleRequest.from_dict(egress_item_data)

                egress.append(egress_item)

        _device_classes = d.pop("device_classes", UNSET)
        device_classes: list[DraDeviceClassRequest] | Unset = UNSET
        if _device_classes is not UNSET:
            device_classes = []
            for device_classes_item_data in _device_classes:
                device_classes_item = DraDeviceClassRequest.from_dict(device_classes_item_data)

                device_classes.append(device_classes_item)

        control_url = d.pop("control_url", UNSET)

        kubernetes_cluster_options_request = cls(
            in_cluster=in_cluster,
            namespace=namespace,
            image=image,
            python=python,
            engines=engines,
            mounts=mounts,
            store=store,
            cache=cache,
            cache_size=cache_size,
            work=work,
            pull_policy=pull_policy,
            pull_secret=pull_secret,
            shared_memory=shared_memory,
            reach=reach,
            run_as=run_as,
            read_only_root=read_only_root,
            cpu_cards=cpu_cards,
            memory_per_card=memory_per_card,
            ephemeral_storage=ephemeral_storage,
            gateway_cidrs=gateway_cidrs,
            egress=egress,
            device_classes=device_classes,
            control_url=control_url,
        )

        return kubernetes_cluster_options_request
