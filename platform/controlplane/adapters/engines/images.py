"""Which version of an engine runs, and in which image.

A chip plug-in may name an image for an engine (``VendorProfile.images``), which takes precedence; otherwise the
engine names one for the chip, or for all chips of its vendor. Tags
that hold ``{version}`` follow the version; any other tag is one version and runs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.ports.engines import EngineProfile
from controlplane.ports.registry import image_template

#: The field of a spec that names a version.
FIELD = "engine_version"
_PLACE = "{version}"
#: What a tag may hold; ``Version`` takes a little more, and spaces around.
_PLAIN = re.compile(r"[0-9A-Za-z.]+")


def template(profile: EngineProfile, *, engine: str, chip: Chip) -> str:
    """The image of the engine on the chip as it is written down; empty if nobody knows one."""
    return image_template(profile, engine=engine, chip=chip)


def image(profile: EngineProfile, *, engine: str, chip: Chip, spec: Mapping[str, Any]) -> str:
    """The image that runs the spec on the chip; empty if nobody knows one."""
    written = template(profile, engine=engine, chip=chip)
    return written.replace(_PLACE, version(profile, spec))


def version(profile: EngineProfile, spec: Mapping[str, Any]) -> str:
    """The version that the spec asks for, or the engine's default."""
    return spec.get(FIELD) or profile.default_version


def check_version(
    profile: EngineProfile, spec: Mapping[str, Any], *, engine: str, chip: Chip | None
) -> tuple[FieldFinding, ...]:
    """What is wrong with the version that the spec asks for; a spec that asks for none is right."""
    asked = spec.get(FIELD)
    if not isinstance(asked, str):
        return ()
    wrong = _wrong(profile, asked) or (
        _wrong_in_image(profile, asked, engine=engine, chip=chip) if chip else ""
    )
    return (FieldFinding(field=FIELD, message=wrong),) if wrong else ()


def no_image(profile: EngineProfile, *, engine: str, chip: Chip) -> str:
    """Why the engine does not run on the chip for want of an image; empty if there is one."""
    if template(profile, engine=engine, chip=chip):
        return ""
    return f"no image of {profile.title} is known for {chip.label}"


def _wrong(profile: EngineProfile, asked: str) -> str:
    if not profile.versions:
        return f"{FIELD} cannot be set: {profile.title} comes with this product, got {asked!r}"
    right = (
        f"a version of {profile.title} {profile.versions}, for example {profile.default_version}"
    )
    try:
        known = bool(_PLAIN.fullmatch(asked)) and Version(asked) in SpecifierSet(
            profile.versions, prereleases=True
        )
    except InvalidVersion:
        known = False
    return "" if known else f"{FIELD} must be {right}, got {asked!r}"


def _wrong_in_image(profile: EngineProfile, asked: str, *, engine: str, chip: Chip) -> str:
    written = template(profile, engine=engine, chip=chip)
    bears = re.search(rf"(?<![\d.]){re.escape(asked)}(?![\d.])", written)
    if not written or _PLACE in written or bears:
        return ""
    return (
        f"{FIELD} cannot be {asked!r} on {chip.label}: the image known for it is {written}; "
        "leave the field empty"
    )
