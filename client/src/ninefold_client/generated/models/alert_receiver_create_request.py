from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.language_enum import LanguageEnum, check_language_enum
from ..models.receiver_kind import ReceiverKind, check_receiver_kind
from ..types import UNSET, Unset

T = TypeVar("T", bound="AlertReceiverCreateRequest")


@_attrs_define
class AlertReceiverCreateRequest:
    """AlertReceiverCreateRequest"""

    name: str
    kind: ReceiverKind
    url: str | Unset = UNSET
    secret: str | Unset = UNSET
    addresses: list[str] | Unset = UNSET
    language: LanguageEnum | Unset = "en"
    active: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        kind: str = self.kind

        url = self.url

        secret = self.secret

        addresses: list[str] | Unset = UNSET
        if not isinstance(self.addresses, Unset):
            addresses = self.addresses

        language: str | Unset = UNSET
        if not isinstance(self.language, Unset):
            language = self.language

        active = self.active

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "kind": kind,
            }
        )
        if url is not UNSET:
            field_dict["url"] = url
        if secret is not UNSET:
            field_dict["secret"] = secret
        if addresses is not UNSET:
            field_dict["addresses"] = addresses
        if language is not UNSET:
            field_dict["language"] = language
        if active is not UNSET:
            field_dict["active"] = active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        kind = check_receiver_kind(d.pop("kind"))

        url = d.pop("url", UNSET)

        secret = d.pop("secret", UNSET)

        addresses = cast(list[str], d.pop("addresses", UNSET))

        _language = d.pop("language", UNSET)
        language: LanguageEnum | Unset
        if isinstance(_language, Unset):
            language = UNSET
        else:
            language = check_language_enum(_language)

        active = d.pop("active", UNSET)

        alert_receiver_create_request = cls(
            name=name,
            kind=kind,
            url=url,
            secret=secret,
            addresses=addresses,
            language=language,
            active=active,
        )

        return alert_receiver_create_request
