"""What an attempt tells: its progress, its files and the manifest of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rest_framework import serializers

from controlplane.web.rest import LARGEST_INTEGER, StrictSerializer


class ProgressSerializer(StrictSerializer[Any]):
    points = serializers.ListField(
        child=serializers.DictField(),
        max_length=2000,
        help_text="Each with its step and figures, or with a checkpoint.",
    )

    def validate_points(self, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for point in points:
            step = point.get("step")
            if isinstance(step, int) and step > LARGEST_INTEGER:
                raise serializers.ValidationError(
                    f"a step is at most {LARGEST_INTEGER}, got {step}"
                )
            total = point.get("total_steps", 0)
            if isinstance(total, bool) or not isinstance(total, int) or total < 0:
                message = f"total_steps must be a whole number from 0, got {total!r}"
                raise serializers.ValidationError(message)
        return points


class ManifestFileSerializer(StrictSerializer[Any]):
    path = serializers.CharField(max_length=300, trim_whitespace=False)
    size = serializers.IntegerField(min_value=0, max_value=2**62)
    sha256 = serializers.RegexField(r"^[0-9a-f]{64}$")


class ManifestSerializer(StrictSerializer[Any]):
    kind = serializers.ChoiceField(choices=["model", "report", "outputs"])
    files = ManifestFileSerializer(many=True)
    metrics = serializers.DictField(required=False, default=dict)

    def validate_files(self, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        counts = Counter(file["path"] for file in files)
        twice = [path for path, count in counts.items() if count > 1]
        if twice:
            raise serializers.ValidationError(f"{twice[0]!r} is listed twice")
        return files


class StoredFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    digest = serializers.CharField()
    size = serializers.IntegerField()
