from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.acceptance_enum import AcceptanceEnum, check_acceptance_enum
from ..models.model_state import ModelState, check_model_state
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.hub_import import HubImport
    from ..models.import_source import ImportSource
    from ..models.json_object import JsonObject
    from ..models.object_reference import ObjectReference
    from ..models.reason import Reason


T = TypeVar("T", bound="ModelVersionDetail")


@_attrs_define
class ModelVersionDetail:
    """ModelVersionDetail"""

    uid: str
    name: str
    model: ObjectReference
    team: None | ObjectReference
    number: int
    acceptance_reason: Reason
    import_source: ImportSource | None
    base: None | ObjectReference
    dataset_version: None | ObjectReference
    metrics: JsonObject
    created_at: datetime.datetime
    state_reason: Reason
    fetched: HubImport | None
    state: ModelState | Unset = UNSET
    architecture: str | Unset = UNSET
    context_length: int | Unset = UNSET
    parameters: int | Unset = UNSET
    scheme: str | Unset = UNSET
    format_: str | Unset = UNSET
    acceptance: AcceptanceEnum | Unset = UNSET
    artifact: None | str | Unset = UNSET
    source_path: str | Unset = UNSET
    job_uid: str | Unset = UNSET
    attempt_uid: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.hub_import import HubImport
        from ..models.import_source import ImportSource
        from ..models.object_reference import ObjectReference

        uid = self.uid

        name = self.name

        model = self.model.to_dict()

        team: dict[str, Any] | None
        if isinstance(self.team, ObjectReference):
            team = self.team.to_dict()
        else:
            team = self.team

        number = self.number

        acceptance_reason = self.acceptance_reason.to_dict()

        import_source: dict[str, Any] | None
        if isinstance(self.import_source, ImportSource):
            import_source = self.import_source.to_dict()
        else:
            import_source = self.import_source

        base: dict[str, Any] | None
        if isinstance(self.base, ObjectReference):
            base = self.base.to_dict()
        else:
            base = self.base

        dataset_version: dict[str, Any] | None
        if isinstance(self.dataset_version, ObjectReference):
            dataset_version = self.dataset_version.to_dict()
        else:
            dataset_version = self.dataset_version

        metrics = self.metrics.to_dict()

        created_at = self.created_at.isoformat()

        state_reason = self.state_reason.to_dict()

        fetched: dict[str, Any] | None
        if isinstance(self.fetched, HubImport):
            fetched = self.fetched.to_dict()
        else:
            fetched = self.fetched

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state

        architecture = self.architecture

        context_length = self.context_length

        parameters = self.parameters

        scheme = self.scheme

        format_ = self.format_

        acceptance: str | Unset = UNSET
        if not isinstance(self.acceptance, Unset):
            acceptance = self.acceptance

        artifact: None | str | Unset
        if isinstance(self.artifact, Unset):
            artifact = UNSET
        else:
            artifact = self.artifact

        source_path = self.source_path

        job_uid = self.job_uid

        attempt_uid: None | str | Unset
        if isinstance(self.attempt_uid, Unset):
            attempt_uid = UNSET
        else:
            attempt_uid = self.attempt_uid

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "uid": uid,
                "name": name,
                "model": model,
                "team": team,
                "number": number,
                "acceptance_reason": acceptance_reason,
                "import_source": import_source,
                "base": base,
                "dataset_version": dataset_version,
                "metrics": metrics,
                "created_at": created_at,
                "state_reason": state_reason,
                "fetched": fetched,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if architecture is not UNSET:
            field_dict["architecture"] = architecture
        if context_length is not UNSET:
            field_dict["context_length"] = context_length
        if parameters is not UNSET:
            field_dict["parameters"] = parameters
        if scheme is not UNSET:
            field_dict["scheme"] = scheme
        if format_ is not UNSET:
            field_dict["format"] = format_
        if acceptance is not UNSET:
            field_dict["acceptance"] = acceptance
        if artifact is not UNSET:
            field_dict["artifact"] = artifact
        if source_path is not UNSET:
            field_dict["source_path"] = source_path
        if job_uid is not UNSET:
            field_dict["job_uid"] = job_uid
        if attempt_uid is not UNSET:
            field_dict["attempt_uid"] = attempt_uid

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.hub_import import HubImport
        from ..models.import_source import ImportSource
        from ..models.json_object import JsonObject
        from ..models.object_reference import ObjectReference
        from ..models.reason import Reason

        d = dict(src_dict)
        uid = d.pop("uid")

        name = d.pop("name")

        model = ObjectReference.from_dict(d.pop("model"))

        def _parse_team(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                team_type_0 = ObjectReference.from_dict(data)

                return team_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        team = _parse_team(d.pop("team"))

        number = d.pop("number")

        acceptance_reason = Reason.from_dict(d.pop("acceptance_reason"))

        def _parse_import_source(data: object) -> ImportSource | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                import_source_type_0 = ImportSource.from_dict(data)

                return import_source_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ImportSource | None, data)

        import_source = _parse_import_source(d.pop("import_source"))

        def _parse_base(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                base_type_0 = ObjectReference.from_dict(data)

                return base_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        base = _parse_base(d.pop("base"))

        def _parse_dataset_version(data: object) -> None | ObjectReference:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dataset_version_type_0 = ObjectReference.from_dict(data)

                return dataset_version_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ObjectReference, data)

        dataset_version = _parse_dataset_version(d.pop("dataset_version"))

        metrics = JsonObject.from_dict(d.pop("metrics"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        state_reason = Reason.from_dict(d.pop("state_reason"))

        def _parse_fetched(data: object) -> HubImport | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                fetched_type_0 = HubImport.from_dict(data)

                return fetched_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(HubImport | None, data)

        fetched = _parse_fetched(d.pop("fetched"))

        _state = d.pop("state", UNSET)
        state: ModelState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = check_model_state(_state)

        architecture = d.pop("architecture", UNSET)

        context_length = d.pop("context_length", UNSET)

        parameters = d.pop("parameters", UNSET)

        scheme = d.pop("scheme", UNSET)

        format_ = d.pop("format", UNSET)

        _acceptance = d.pop("acceptance", UNSET)
        acceptance: AcceptanceEnum | Unset
        if isinstance(_acceptance, Unset):
            acceptance = UNSET
        else:
            acceptance = check_acceptance_enum(_acceptance)

        def _parse_artifact(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        artifact = _parse_artifact(d.pop("artifact", UNSET))

        source_path = d.pop("source_path", UNSET)

        job_uid = d.pop("job_uid", UNSET)

        def _parse_attempt_uid(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        attempt_uid = _parse_attempt_uid(d.pop("attempt_uid", UNSET))

        model_version_detail = cls(
            uid=uid,
            name=name,
            model=model,
            team=team,
            number=number,
            acceptance_reason=acceptance_reason,
            import_source=import_source,
            base=base,
            dataset_version=dataset_version,
            metrics=metrics,
            created_at=created_at,
            state_reason=state_reason,
            fetched=fetched,
            state=state,
            architecture=architecture,
            context_length=context_length,
            parameters=parameters,
            scheme=scheme,
            format_=format_,
            acceptance=acceptance,
            artifact=artifact,
            source_path=source_path,
            job_uid=job_uid,
            attempt_uid=attempt_uid,
        )

        return model_version_detail
