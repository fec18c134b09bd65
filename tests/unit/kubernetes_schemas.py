"""Objects against the OpenAPI documents of Kubernetes, of the oldest and the newest release that is supported.

The test cluster runs Kubernetes 1.20, which knows neither ``policy/v1`` nor ``autoscaling/v2`` and enforces no Pod
Security level; its network enforces no NetworkPolicy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kubernetes_validate

VERSIONS = ("1.29", "1.37")


def validate(manifest: Mapping[str, Any]) -> None:
    """:raises kubernetes_validate.ValidationError: if a field is unknown, missing or of the wrong type."""
    for version in VERSIONS:
        kubernetes_validate.validate(dict(manifest), version, strict=True)
