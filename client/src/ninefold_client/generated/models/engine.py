from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.flags_enum import FlagsEnum, check_flags_enum

if TYPE_CHECKING:
    from ..models.engine_chips import EngineChips
    from ..models.engine_images import EngineImages
    from ..models.engine_metrics import EngineMetrics
    from ..models.engine_tasks import EngineTasks


T = TypeVar("T", bound="Engine")


@_attrs_define
class Engine:
    """Engine"""

    name: str
    title: str
    environment: str
    versions: str
    default_version: str
    flags: FlagsEnum
    formats: list[str]
    metrics: EngineMetrics
    images: EngineImages
    chips: EngineChips
    remarks: list[str]
    sources: list[str]
    tasks: EngineTasks

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        title = self.title

        environment = self.environment

        versions = self.versions

        default_version = self.default_version

        flags: str = self.flags

        formats = self.formats

        metrics = self.metrics.to_dict()

        images = self.images.to_dict()

        chips = self.chips.to_dict()

        remarks = self.remarks

        sources = self.sources

        tasks = self.tasks.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "title": title,
                "environment": environment,
                "versions": versions,
                "default_version": default_version,
                "flags": flags,
                "formats": formats,
                "metrics": metrics,
                "images": images,
                "chips": chips,
                "remarks": remarks,
                "sources": sources,
                "tasks": tasks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.engine_chips import EngineChips
        from ..models.engine_images import EngineImages
        from ..models.engine_metrics import EngineMetrics
        from ..models.engine_tasks import EngineTasks

        d = dict(src_dict)
        name = d.pop("name")

        title = d.pop("title")

        environment = d.pop("environment")

        versions = d.pop("versions")

        default_version = d.pop("default_version")

        flags = check_flags_enum(d.pop("flags"))

        formats = cast(list[str], d.pop("formats"))

        metrics = EngineMetrics.from_dict(d.pop("metrics"))

        images = EngineImages.from_dict(d.pop("images"))

        chips = EngineChips.from_dict(d.pop("chips"))

        remarks = cast(list[str], d.pop("remarks"))

        sources = cast(list[str], d.pop("sources"))

        tasks = EngineTasks.from_dict(d.pop("tasks"))

        engine = cls(
            name=name,
            title=title,
            environment=environment,
            versions=versions,
            default_version=default_version,
            flags=flags,
            formats=formats,
            metrics=metrics,
            images=images,
            chips=chips,
            remarks=remarks,
            sources=sources,
            tasks=tasks,
        )

        return engine
