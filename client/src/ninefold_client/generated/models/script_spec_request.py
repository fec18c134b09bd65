from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.script_spec_request_environment import ScriptSpecRequestEnvironment


T = TypeVar("T", bound="ScriptSpecRequest")


@_attrs_define
class ScriptSpecRequest:
    """Fields of the engines with the task script."""

    argv: list[str]
    environment: ScriptSpecRequestEnvironment | Unset = UNSET
    maximum_run_time_seconds: int | Unset = 3600

    def to_dict(self) -> dict[str, Any]:
        argv = self.argv

        environment: dict[str, Any] | Unset = UNSET
        if not isinstance(self.environment, Unset):
            environment = self.environment.to_dict()

        maximum_run_time_seconds = self.maximum_run_time_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "argv": argv,
            }
        )
        if environment is not UNSET:
            field_dict["environment"] = environment
        if maximum_run_time_seconds is not UNSET:
            field_dict["maximum_run_time_seconds"] = maximum_run_time_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.script_spec_request_environment import (
            ScriptSpecRequestEnvironment,
        )

        d = dict(src_dict)
        argv = cast(list[str], d.pop("argv"))

        _environment = d.pop("environment", UNSET)
        environment: ScriptSpecRequestEnvironment | Unset
        if isinstance(_environment, Unset):
            environment = UNSET
        else:
            environment = ScriptSpecRequestEnvironment.from_dict(_environment)

        maximum_run_time_seconds = d.pop("maximum_run_time_seconds", UNSET)

        script_spec_request = cls(
            argv=argv,
            environment=environment,
            maximum_run_time_seconds=maximum_run_time_seconds,
        )

        return script_spec_request
