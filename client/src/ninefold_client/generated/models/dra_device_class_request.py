from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.dra_device_class_request_attributes import (
        DraDeviceClassRequestAttributes,
    )


T = TypeVar("T", bound="DraDeviceClassRequest")


@_attrs_define
class DraDeviceClassRequest:
    """A DeviceClass of a DRA driver whose devices represent an extended resource."""

    resource: str
    device_class: str
    driver: str
    attributes: DraDeviceClassRequestAttributes | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        resource = self.resource

        device_class = self.device_class

        driver = self.driver

        attributes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.attributes, Unset):
            attributes = self.attributes.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "resource": resource,
                "device_class": device_class,
                "driver": driver,
            }
        )
        if attributes is not UNSET:
            field_dict["attributes"] = attributes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.dra_device_class_request_attributes import (
            DraDeviceClassRequestAttributes,
        )

        d = dict(src_dict)
        resource = d.pop("resource")

        device_class = d.pop("device_class")

        driver = d.pop("driver")

        _attributes = d.pop("attributes", UNSET)
        attributes: DraDeviceClassRequestAttributes | Unset
        if isinstance(_attributes, Unset):
            attributes = UNSET
        else:
            attributes = DraDeviceClassRequestAttributes.from_dict(_attributes)

        dra_device_class_request = cls(
            resource=resource,
            device_class=device_class,
            driver=driver,
            attributes=attributes,
        )

        return dra_device_class_request
