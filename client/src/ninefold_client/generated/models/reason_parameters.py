from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.nested_reason import NestedReason


T = TypeVar("T", bound="ReasonParameters")


@_attrs_define
class ReasonParameters:
    """Scalars, reasons, or lists of them, by the names in the message template."""

    additional_properties: dict[
        str,
        bool | float | list[bool | float | NestedReason | None | str] | NestedReason | None | str,
    ] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.nested_reason import NestedReason

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            if isinstance(prop, NestedReason):
                field_dict[prop_name] = prop.to_dict()
            elif isinstance(prop, list):
                field_dict[prop_name] = []
                for additional_property_type_2_item_data in prop:
                    additional_property_type_2_item: bool | dict[str, Any] | float | None | str
                    if isinstance(additional_property_type_2_item_data, NestedReason):
                        additional_property_type_2_item = (
                            additional_property_type_2_item_data.to_dict()
                        )
                    else:
                        additional_property_type_2_item = additional_property_type_2_item_data
                    field_dict[prop_name].append(additional_property_type_2_item)

            else:
                field_dict[prop_name] = prop

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.nested_reason import NestedReason

        d = dict(src_dict)
        reason_parameters = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():

            def _parse_additional_property(
                data: object,
            ) -> (
                bool
                | float
                | list[bool | float | NestedReason | None | str]
                | NestedReason
                | None
                | str
            ):
                if data is None:
                    return data
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    additional_property_type_1 = NestedReason.from_dict(data)

                    return additional_property_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, list):
                        raise TypeError()
                    additional_property_type_2 = []
                    _additional_property_type_2 = data
                    for additional_property_type_2_item_data in _additional_property_type_2:

                        def _parse_additional_property_type_2_item(
                            data: object,
                        ) -> bool | float | NestedReason | None | str:
                            if data is None:
                                return data
                            try:
                                if not isinstance(data, dict):
                                    raise TypeError()
                                additional_property_type_2_item_type_1 = NestedReason.from_dict(
                                    data
                                )

                                return additional_property_type_2_item_type_1
                            except (TypeError, ValueError, AttributeError, KeyError):
                                pass
                            return cast(bool | float | NestedReason | None | str, data)

                        additional_property_type_2_item = _parse_additional_property_type_2_item(
                            additional_property_type_2_item_data
                        )

                        additional_property_type_2.append(additional_property_type_2_item)

                    return additional_property_type_2
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                return cast(
                    bool
                    | float
                    | list[bool | float | NestedReason | None | str]
                    | NestedReason
                    | None
                    | str,
                    data,
                )

            additional_property = _parse_additional_property(prop_dict)

            additional_properties[prop_name] = additional_property

        reason_parameters.additional_properties = additional_properties
        return reason_parameters

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(
        self, key: str
    ) -> bool | float | list[bool | float | NestedReason | None | str] | NestedReason | None | str:
        return self.additional_properties[key]

    def __setitem__(
        self,
        key: str,
        value: bool
        | float
        | list[bool | float | NestedReason | None | str]
        | NestedReason
        | None
        | str,
    ) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
