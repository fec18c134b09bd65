"""Comparison of the Launches that one spec renders for two chips: request and response."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from apps.jobs.api.serializers import (
    FINETUNE_EXAMPLE,
    FindingSerializer,
    JobSubmitSerializer,
)
from apps.jobs.services import LaunchComparison
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.ports import adapter_registry as ports
from controlplane.ports.engines import ArgumentVerification
from controlplane.ports.launches import DifferencePart, Launch
from controlplane.web.rest import EnumField, TextListField


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "A fine-tune on two chips",
            value={**FINETUNE_EXAMPLE, "on": ["nvidia-a100-80g", "ascend-910b3"]},
            request_only=True,
        )
    ]
)
class LaunchComparisonRequestSerializer(JobSubmitSerializer):
    """What a job would be, and the two chips to render it for."""

    on = serializers.ListField(
        child=serializers.CharField(max_length=60),
        min_length=2,
        max_length=2,
        help_text="The two chips to compare, by name or alias.",
    )

    def validate_on(self, names: list[str]) -> tuple[Chip, Chip]:
        found = []
        for name in names:
            chip = ports.chip_by_name(name)
            if chip is None:
                known = ", ".join(ports.all_chips())
                raise serializers.ValidationError(f"unknown chip {name!r}; known chips: {known}")
            found.append(chip)
        return found[0], found[1]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        chips = attrs.pop("on")
        return {**super().validate(attrs), "chips": chips}


class RenderedLaunchSerializer(serializers.Serializer[Any]):
    """What one chip would run; placeholders in braces are filled in by the cluster."""

    chip = serializers.CharField()
    findings = FindingSerializer(
        many=True, help_text="Reasons why the launch cannot be rendered; empty if it can."
    )
    image = serializers.CharField()
    argv = TextListField()
    environment = serializers.DictField(child=serializers.CharField())
    files = serializers.DictField(child=serializers.CharField(), help_text="File contents by path.")


class LaunchDifferenceSerializer(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="For example image, argv.3 or files/train.yaml:12.")
    part = EnumField(DifferencePart)
    left = serializers.CharField(allow_null=True)
    right = serializers.CharField(allow_null=True)


class LaunchComparisonSerializer(serializers.Serializer[Any]):
    flags = EnumField(ArgumentVerification, help_text="How the rendered arguments were verified.")
    renderings = RenderedLaunchSerializer(many=True)
    differences = LaunchDifferenceSerializer(many=True)
    changed_fields = TextListField(help_text="Fields of the spec that differ between the chips.")


def launch_comparison_json(found: LaunchComparison) -> dict[str, Any]:
    """The data of ``LaunchComparisonSerializer``."""
    sides = zip(found.chips, found.findings, found.launches, strict=True)
    return {
        "flags": found.flags,
        "renderings": [_rendered_launch_json(*side) for side in sides],
        "differences": [asdict(difference) for difference in found.differences],
        "changed_fields": list(found.changed_fields),
    }


def _rendered_launch_json(
    chip: Chip, findings: tuple[FieldFinding, ...], launch: Launch | None
) -> dict[str, Any]:
    role = launch.roles[0] if launch is not None else None
    return {
        "chip": chip.name,
        "findings": [asdict(finding) for finding in findings],
        "image": launch.image if launch is not None else "",
        "argv": list(role.argv) if role is not None else [],
        "environment": dict(role.environment) if role is not None else {},
        "files": dict(launch.files) if launch is not None else {},
    }
