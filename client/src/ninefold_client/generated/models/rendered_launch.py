from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.finding import Finding
    from ..models.rendered_launch_environment import RenderedLaunchEnvironment
    from ..models.rendered_launch_files import RenderedLaunchFiles


T = TypeVar("T", bound="RenderedLaunch")


@_attrs_define
class RenderedLaunch:
    """What one chip would run; placeholders in braces are filled in by the cluster."""

    chip: str
    findings: list[Finding]
    image: str
    argv: list[str]
    environment: RenderedLaunchEnvironment
    files: RenderedLaunchFiles

    def to_dict(self) -> dict[str, Any]:
        chip = self.chip

        findings = []
        for findings_item_data in self.findings:
            findings_item = findings_item_data.to_dict()
            findings.append(findings_item)

        image = self.image

        argv = self.argv

        environment = self.environment.to_dict()

        files = self.files.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "chip": chip,
                "findings": findings,
                "image": image,
                "argv": argv,
                "environment": environment,
                "files": files,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finding import Finding
        from ..models.rendered_launch_environment import RenderedLaunchEnvironment
        from ..models.rendered_launch_files import RenderedLaunchFiles

        d = dict(src_dict)
        chip = d.pop("chip")

        findings = []
        _findings = d.pop("findings")
        for findings_item_data in _findings:
            findings_item = Finding.from_dict(findings_item_data)

            findings.append(findings_item)

        image = d.pop("image")

        argv = cast(list[str], d.pop("argv"))

        environment = RenderedLaunchEnvironment.from_dict(d.pop("environment"))

        files = RenderedLaunchFiles.from_dict(d.pop("files"))

        rendered_launch = cls(
            chip=chip,
            findings=findings,
            image=image,
            argv=argv,
            environment=environment,
            files=files,
        )

        return rendered_launch
