"""Two renderings as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from apps.jobs.services import SideBySide
from controlplane.domain.accelerators import Chip
from controlplane.domain.fields import Finding
from controlplane.ports.launches import Launch


def side_by_side_json(found: SideBySide) -> dict[str, Any]:
    """As ``SideBySideSerializer`` describes it."""
    sides = zip(found.chips, found.findings, found.launches, strict=True)
    return {
        "flags": found.flags,
        "renderings": [_rendered(*side) for side in sides],
        "differences": [asdict(difference) for difference in found.differences],
        "changed_fields": list(found.changed_fields),
    }


def _rendered(chip: Chip, findings: tuple[Finding, ...], launch: Launch | None) -> dict[str, Any]:
    role = launch.roles[0] if launch is not None else None
    return {
        "chip": chip.name,
        "findings": [asdict(finding) for finding in findings],
        "image": launch.image if launch is not None else "",
        "argv": list(role.argv) if role is not None else [],
        "environment": dict(role.environment) if role is not None else {},
        "files": dict(launch.files) if launch is not None else {},
    }
