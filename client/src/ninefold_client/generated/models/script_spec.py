from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.script_spec_environment import ScriptSpecEnvironment


T = TypeVar("T", bound="ScriptSpec")


@_attrs_define
class ScriptSpec:
    """Fields of the engines with the task script."""

    argv: list[str] | None | Unset = UNSET
    environment: None | ScriptSpecEnvironment | Unset = UNSET
    maximum_run_time_seconds: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.script_spec_environment import ScriptSpecEnvironment

        argv: list[str] | None | Unset
        if isinstance(self.argv, Unset):
            argv = UNSET
        elif isinstance(self.argv, list):
            argv = self.argv

        else:
            argv = self.argv

        environment: dict[str, Any] | None | Unset
        if isinstance(self.environment, Unset):
            environment = UNSET
        elif isinstance(self.environment, ScriptSpecEnvironment):
            environment = self.environment.to_dict()
        else:
            environment = self.environment

        maximum_run_time_seconds: int | None | Unset
        if isinstance(self.maximum_run_time_seconds, Unset):
            maximum_run_time_seconds = UNSET
        else:
            maximum_run_time_seconds = self.maximum_run_time_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if argv is not UNSET:
            field_dict["argv"] = argv
        if environment is not UNSET:
            field_dict["environment"] = environment
        if maximum_run_time_seconds is not UNSET:
            field_dict["maximum_run_time_seconds"] = maximum_run_time_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.script_spec_environment import ScriptSpecEnvironment

        d = dict(src_dict)

        def _parse_argv(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                argv_type_0 = cast(list[str], data)

                return argv_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        argv = _parse_argv(d.pop("argv", UNSET))

        def _parse_environment(data: object) -> None | ScriptSpecEnvironment | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                environment_type_0 = ScriptSpecEnvironment.from_dict(data)

                return environment_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ScriptSpecEnvironment | Unset, data)

        environment = _parse_environment(d.pop("environment", UNSET))

        def _parse_maximum_run_time_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        maximum_run_time_seconds = _parse_maximum_run_time_seconds(
            d.pop("maximum_run_time_seconds", UNSET)
        )

        script_spec = cls(
            argv=argv,
            environment=environment,
            maximum_run_time_seconds=maximum_run_time_seconds,
        )

        return script_spec
