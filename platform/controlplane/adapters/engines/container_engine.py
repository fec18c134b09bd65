"""Base class of engines that run in their own image: image, version, supported chips and number formats.

``container_training`` and ``container_serving`` add what training and serving engines have in common.

A chip plug-in may name an image for an engine (``VendorProfile.images``), which takes precedence; otherwise the
engine names one for the chip, or for all chips of its vendor. Tags that hold ``{version}`` follow the version;
any other tag is one version and runs nothing else. Images for Ascend are built for generations of chips, not
for chips.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from controlplane.adapters.engines import container_commands
from controlplane.domain.common.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit
from controlplane.ports.adapter_registry import image_template
from controlplane.ports.engines import ROLES, EngineProfile, EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import EngineEnvironment, Launch, LaunchRole

#: Libraries of every such image: no downloads, no telemetry, and writes only into their own folder.
OFFLINE_ENVIRONMENT: Mapping[str, str] = {
    "HF_HOME": "{work}/tmp/huggingface",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class ContainerEngine(ABC):
    """Implements the part of ``controlplane.ports.engines.Engine`` that follows from the image."""

    name: str
    engine_profile: EngineProfile
    #: What it supports on no chip.
    field_limits: tuple[FieldLimit, ...] = ()
    #: Whether bfloat16 is refused on chips that do not have it.
    checks_bfloat16 = True

    def profile(self) -> EngineProfile:
        return self.engine_profile

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        formats = bfloat16_limits(chip) if self.checks_bfloat16 else ()
        return (*self.field_limits, *formats)

    def environment(self) -> EngineEnvironment | None:
        """None: it comes as an image only."""
        return None

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        if chip.kind is ChipKind.CPU:
            return Reason(
                "engine.accelerator.required",
                "{engine} requires an accelerator",
                engine=self.profile().title,
            )
        return self.missing_image_reason(chip)

    def missing_image_reason(self, chip: Chip) -> str:
        """Why the engine has no image for the chip; empty if there is one."""
        profile = self.profile()
        if image_template(profile, engine=self.name, chip=chip):
            return ""
        return Reason(
            "engine.image.unknown",
            "no image of {engine} is known for {chip}",
            engine=profile.title,
            chip=chip.label,
        )

    def image(self, chip: Chip, spec: Mapping[str, Any]) -> str:
        """The image that runs the spec on the chip; empty if none is configured."""
        profile = self.profile()
        written = image_template(profile, engine=self.name, chip=chip)
        return written.replace(_VERSION_PLACEHOLDER, _engine_version(profile, spec))

    def version(self, chip: Chip | None, spec: Mapping[str, Any]) -> str:
        """The version in the image: the one that its tag bears, if the tag is fixed; else that of the spec."""
        profile = self.profile()
        written = image_template(profile, engine=self.name, chip=chip) if chip is not None else ""
        if _VERSION_PLACEHOLDER not in written and profile.versions:
            tag = written.rpartition("/")[2].partition(":")[2]
            known = SpecifierSet(profile.versions, prereleases=True)
            for each in _TAG_VERSION.findall(tag):
                if Version(each) in known:
                    return str(each)
        return _engine_version(profile, spec)

    def check_version(
        self, spec: Mapping[str, Any], *, chip: Chip | None
    ) -> tuple[FieldFinding, ...]:
        """Problems of the requested version; none if the spec names no version."""
        requested, profile = spec.get(VERSION_FIELD), self.profile()
        if not isinstance(requested, str):
            return ()
        wrong = _version_error(profile, requested)
        if not wrong and chip:
            image = image_template(profile, engine=self.name, chip=chip)
            wrong = _image_error(image, requested, chip=chip)
        return (FieldFinding(field=VERSION_FIELD, message=wrong),) if wrong else ()

    def step_launch(
        self,
        request: RenderRequest,
        *,
        spec: Mapping[str, Any],
        files: Mapping[str, str],
        environment: Mapping[str, str],
        grace: timedelta,
        shares_checkpoints: bool = False,
    ) -> Launch:
        """The Launch of a gang of equal replicas that run the steps among the files and report."""
        variables = dict(environment)
        if request.report_url:
            variables["NINEFOLD_REPORT_URL"] = request.report_url
        role = LaunchRole(
            name=ROLES[request.task],
            argv=container_commands.RUN_STEPS_COMMAND,
            placements=request.placements,
            environment=variables,
        )
        return Launch(
            name=request.name,
            roles=(role,),
            files=files,
            inputs=request.inputs,
            image=self.image(request.chip, spec),
            secrets={"NINEFOLD_ATTEMPT_TOKEN": request.token} if request.token else {},
            grace=grace,
            continues=request.continues,
            shares_checkpoints=shares_checkpoints,
            labels=request.labels,
        )


#: The field of a spec that names a version.
VERSION_FIELD = "engine_version"
_VERSION_PLACEHOLDER = "{version}"
#: What a tag may hold; ``Version`` takes a little more, and spaces around.
_TAG = re.compile(r"[0-9A-Za-z.]+")
#: A number of a release within a tag, as in ``v0.5.14-cann9.0.0-910b``.
_TAG_VERSION = re.compile(r"(?<![\d.])\d+(?:\.\d+)+(?![\d.])")


def _engine_version(profile: EngineProfile, spec: Mapping[str, Any]) -> str:
    """The spec's version, or the engine's default."""
    return spec.get(VERSION_FIELD) or profile.default_version


def _version_error(profile: EngineProfile, requested: str) -> str:
    if not profile.versions:
        return Reason(
            "engine.version.not_configurable",
            "{field} cannot be set, got {value}: {engine} is part of Ninefold",
            field=VERSION_FIELD,
            engine=profile.title,
            value=repr(requested),
        )
    try:
        known = bool(_TAG.fullmatch(requested)) and Version(requested) in SpecifierSet(
            profile.versions, prereleases=True
        )
    except InvalidVersion:
        known = False
    return (
        ""
        if known
        else Reason(
            "engine.version.not_supported",
            "{field} must be a version of {engine} {versions}, for example {example}, got {value}",
            field=VERSION_FIELD,
            engine=profile.title,
            versions=profile.versions,
            example=profile.default_version,
            value=repr(requested),
        )
    )


def _image_error(image: str, requested: str, *, chip: Chip) -> str:
    bears = re.search(rf"(?<![\d.]){re.escape(requested)}(?![\d.])", image)
    if not image or _VERSION_PLACEHOLDER in image or bears:
        return ""
    return Reason(
        "engine.version.fixed_by_image",
        "{field} cannot be {value} on {chip}: its image is {image}; leave the field empty",
        field=VERSION_FIELD,
        value=repr(requested),
        chip=chip.label,
        image=image,
    )


_A2 = (
    "ascend-910b1",
    "ascend-910b2",
    "ascend-910b2c",
    "ascend-910b3",
    "ascend-910b4",
    "ascend-910b4-1",
)
_A3 = ("ascend-910c",)
_INFERENCE = ("ascend-310p", "ascend-310p-duo")


def ascend_images(*, a2: str, a3: str, inference: str = "") -> dict[str, str]:
    """The image of each chip, for ``EngineProfile.images``; ``inference`` is that of the 310P, if there is one."""
    builds = ((_A2, a2), (_A3, a3), (_INFERENCE, inference))
    return {chip: image for chips, image in builds if image for chip in chips}


def is_inference_chip(chip: Chip) -> bool:
    """Whether it is Ascend's chip for inference, the 310P."""
    return chip.name in _INFERENCE


def resolve_precision(spec: Mapping[str, Any], *, chip: Chip) -> str:
    """The number format of the computation: ``auto`` is bfloat16 wherever the chip is not known to lack it."""
    requested = str(spec["precision"])
    if requested != "auto":
        return requested
    return "float16" if _lacks_bfloat16(chip) else "bfloat16"


def bfloat16_limits(chip: Chip | None) -> tuple[FieldLimit, ...]:
    """The limit of a chip that is known to lack the format."""
    if chip is None or not _lacks_bfloat16(chip):
        return ()
    return (
        FieldLimit.of(
            "precision",
            ("bfloat16",),
            "engine.precision.bfloat16_not_supported",
            "{chip} does not support bfloat16",
            chip=chip.label,
        ),
    )


def _lacks_bfloat16(chip: Chip) -> bool:
    return bool(chip.peak_rates) and Dtype.BFLOAT16 not in chip.peak_rates
