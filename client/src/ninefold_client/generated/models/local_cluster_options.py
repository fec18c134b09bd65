from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.json_object import JsonObject


T = TypeVar("T", bound="LocalClusterOptions")


@_attrs_define
class LocalClusterOptions:
    """LocalClusterOptions"""

    home: str
    python: str | Unset = UNSET
    cards: int | Unset = UNSET
    node: str | Unset = UNSET
    chip: str | Unset = UNSET
    log_limit: int | Unset = UNSET
    first_account: int | Unset = UNSET
    last_account: int | Unset = UNSET
    first_port: int | Unset = UNSET
    last_port: int | Unset = UNSET
    artifacts_kind: str | Unset = UNSET
    artifacts: JsonObject | None | Unset = UNSET
    cache_limit: int | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.json_object import JsonObject

        home: str
        home = self.home

        python = self.python

        cards = self.cards

        node = self.node

        chip = self.chip

        log_limit = self.log_limit

        first_account = self.first_account

        last_account = self.last_account

        first_port = self.first_port

        last_port = self.last_port

        artifacts_kind = self.artifacts_kind

        artifacts: dict[str, Any] | None | Unset
        if isinstance(self.artifacts, Unset):
            artifacts = UNSET
        elif isinstance(self.artifacts, JsonObject):
            artifacts = self.artifacts.to_dict()
        else:
            artifacts = self.artifacts

        cache_limit = self.cache_limit

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "home": home,
            }
        )
        if python is not UNSET:
            field_dict["python"] = python
        if cards is not UNSET:
            field_dict["cards"] = cards
        if node is not UNSET:
            field_dict["node"] = node
        if chip is not UNSET:
            field_dict["chip"] = chip
        if log_limit is not UNSET:
            field_dict["log_limit"] = log_limit
        if first_account is not UNSET:
            field_dict["first_account"] = first_account
        if last_account is not UNSET:
            field_dict["last_account"] = last_account
        if first_port is not UNSET:
            field_dict["first_port"] = first_port
        if last_port is not UNSET:
            field_dict["last_port"] = last_port
        if artifacts_kind is not UNSET:
            field_dict["artifacts_kind"] = artifacts_kind
        if artifacts is not UNSET:
            field_dict["artifacts"] = artifacts
        if cache_limit is not UNSET:
            field_dict["cache_limit"] = cache_limit

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.json_object import JsonObject

        d = dict(src_dict)

        def _parse_home(data: object) -> str:
            return cast(str, data)

        home = _parse_home(d.pop("home"))

        python = d.pop("python", UNSET)

        cards = d.pop("cards", UNSET)

        node = d.pop("node", UNSET)

        chip = d.pop("chip", UNSET)

        log_limit = d.pop("log_limit", UNSET)

        first_account = d.pop("first_account", UNSET)

        last_account = d.pop("last_account", UNSET)

        first_port = d.pop("first_port", UNSET)

        last_port = d.pop("last_port", UNSET)

        artifacts_kind = d.pop("artifacts_kind", UNSET)

        def _parse_artifacts(data: object) -> JsonObject | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                artifacts_type_0 = JsonObject.from_dict(data)

                return artifacts_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JsonObject | None | Unset, data)

        artifacts = _parse_artifacts(d.pop("artifacts", UNSET))

        cache_limit = d.pop("cache_limit", UNSET)

        local_cluster_options = cls(
            home=home,
            python=python,
            cards=cards,
            node=node,
            chip=chip,
            log_limit=log_limit,
            first_account=first_account,
            last_account=last_account,
            first_port=first_port,
            last_port=last_port,
            artifacts_kind=artifacts_kind,
            artifacts=artifacts,
            cache_limit=cache_limit,
        )

        return local_cluster_options
