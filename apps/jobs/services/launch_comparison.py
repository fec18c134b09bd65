"""Comparison of the Launches that one spec renders for two chips; nothing is started, and secrets are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from apps.jobs.models import Job
from apps.jobs.services.job_requests import (
    JobRequest,
    SpecRefused,
    check_engine_supports_job,
    job_request_resolve,
)
from apps.models import selectors as models
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.jobs.parallelism import node_and_card_counts
from controlplane.domain.quotas.claims import GangShape
from controlplane.ports import adapter_registry
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.engines import ArgumentVerification, Engine, EngineTask, RenderRequest
from controlplane.ports.launches import (
    InputArtifact,
    Launch,
    LaunchDifference,
    LaunchPlacement,
    launch_differences,
)

#: Longer texts are paired line by line, because alignment takes quadratic time.
_MAX_ALIGNED_LINES = 400
_MAX_UNFOLDED_LINES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    """A pair of aligned lines; None if a side has no such line."""

    left: str | None
    right: str | None

    @property
    def differs(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSection:
    """One part of the Launches: ``image``, ``cards``, ``argv``, ``environment``, or the path of a file."""

    name: str
    lines: tuple[ComparedLine, ...]

    @property
    def differing(self) -> int:
        return sum(line.differs for line in self.lines)

    @property
    def folded(self) -> bool:
        """Whether to collapse it: a long text without differences."""
        return len(self.lines) > _MAX_UNFOLDED_LINES and not self.differing


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchComparison:
    """One spec rendered for two chips."""

    chips: tuple[Chip, Chip]
    #: For each chip, why there is no Launch; empty if there is one.
    findings: tuple[tuple[FieldFinding, ...], tuple[FieldFinding, ...]]
    #: For each chip; None if it cannot be rendered.
    launches: tuple[Launch | None, Launch | None]
    sections: tuple[ComparedSection, ...]
    differences: tuple[LaunchDifference, ...]
    #: Paths of fields of the spec that differ between the chips.
    changed_fields: tuple[str, ...]
    flags: ArgumentVerification


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaunchPreview:
    chip: Chip
    findings: tuple[FieldFinding, ...] = ()
    spec: Mapping[str, Any] | None = None
    launch: Launch | None = None


def compare_launches_of_request(
    request: JobRequest, *, chips: tuple[Chip, Chip]
) -> LaunchComparison:
    """Compare the Launches of a request for the two chips.

    :raises SpecRefused: if there is no such engine, or it does not support the kind of job.
    """
    if findings := tuple(check_engine_supports_job(request)):
        raise SpecRefused(findings)
    return _compare_launches(
        adapter_registry.engine_by_name(request.engine),
        *(_preview_request(request, chip) for chip in chips),
    )


def compare_launches_of_job(job: Job, *, chips: tuple[Chip, Chip]) -> LaunchComparison:
    """Compare the Launches of a job on the two chips; the cluster fills in placeholders such as ``{work}``."""
    return _compare_launches(
        adapter_registry.engine_by_name(job.engine), *(_preview_job(job, chip) for chip in chips)
    )


def _preview_request(request: JobRequest, chip: Chip) -> _LaunchPreview:
    resolved = job_request_resolve(replace(request, chips=(chip.name,)))
    if resolved.spec is None:
        return _LaunchPreview(chip=chip, findings=resolved.findings)
    replicas, cards = node_and_card_counts([chip], request.cards)
    return _preview_launch(
        engine=adapter_registry.engine_by_name(request.engine),
        task=EngineTask(request.kind),
        spec=resolved.spec,
        chip=chip,
        placements=_placeholder_placements(replicas, cards),
        version=request.model_version,
        inputs=_input_trees(request.model_version, request.dataset_version, request.code),
    )


def _preview_job(job: Job, chip: Chip) -> _LaunchPreview:
    engine, task = adapter_registry.engine_by_name(job.engine), EngineTask(job.kind)
    if reason := engine.unsupported_reason(task, chip):
        return _LaunchPreview(chip=chip, findings=(FieldFinding(field="chips", message=reason),))
    facts = models.engine_model_facts(job.model_version) if job.model_version else None
    if findings := engine.check(task, job.spec, chip=chip, model=facts):
        return _LaunchPreview(chip=chip, findings=findings)
    role = GangShape.from_json(job.shape).roles[0]
    return _preview_launch(
        engine=engine,
        task=task,
        spec=job.spec,
        chip=chip,
        placements=_placeholder_placements(role.replicas, role.cards),
        version=job.model_version,
        inputs=_input_trees(job.model_version, job.dataset_version, job.code),
    )


def _preview_launch(
    *,
    engine: Engine,
    task: EngineTask,
    spec: Mapping[str, Any],
    chip: Chip,
    placements: tuple[LaunchPlacement, ...],
    version: ModelVersion | None,
    inputs: tuple[InputArtifact, ...],
) -> _LaunchPreview:
    request = RenderRequest(
        task=task,
        name="preview",
        spec=spec,
        chip=chip,
        placements=placements,
        inputs=inputs,
        model=models.engine_model_facts(version) if version else None,
    )
    try:
        launch = engine.render(request)
    except ValueError as refusal:
        finding = field_finding(
            "chips",
            "launch.preview.refused",
            "{chip}: {reason}",
            chip=chip.name,
            reason=str(refusal),
        )
        return _LaunchPreview(chip=chip, findings=(finding,), spec=spec)
    return _LaunchPreview(chip=chip, spec=spec, launch=launch)


def _placeholder_placements(replicas: int, cards: int) -> tuple[LaunchPlacement, ...]:
    """Placements on placeholder nodes, because the scheduler has not chosen nodes yet."""
    return tuple(
        LaunchPlacement(node=f"node-{index}", cards=tuple(range(cards)))
        for index in range(replicas)
    )


def _input_trees(
    version: ModelVersion | None, dataset: DatasetVersion | None, code: Artifact | None
) -> tuple[InputArtifact, ...]:
    artifacts = {
        "model": version.artifact if version else None,
        "dataset": dataset.artifact if dataset else None,
        "code": code,
    }
    trees = []
    for name, artifact in artifacts.items():
        if artifact is None:
            continue
        try:
            trees.append(models.input_tree(name, artifact))
        except BlobMissing:
            # A deleted input does not matter for the rendered Launch; submission refuses it.
            continue
    return tuple(trees)


def _compare_launches(
    engine: Engine, left: _LaunchPreview, right: _LaunchPreview
) -> LaunchComparison:
    both = left.launch is not None and right.launch is not None
    return LaunchComparison(
        chips=(left.chip, right.chip),
        findings=(left.findings, right.findings),
        launches=(left.launch, right.launch),
        sections=tuple(_compared_sections(left.launch, right.launch)),
        differences=launch_differences(left.launch, right.launch)
        if left.launch is not None and right.launch is not None
        else (),
        changed_fields=tuple(_changed_fields(left.spec or {}, right.spec or {})) if both else (),
        flags=engine.profile().flags,
    )


def _changed_fields(
    left: Mapping[str, Any], right: Mapping[str, Any], at: str = ""
) -> Iterator[str]:
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name), right.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _changed_fields(one, other, f"{at}{name}.")
        elif one != other:
            yield f"{at}{name}"


def _compared_sections(left: Launch | None, right: Launch | None) -> Iterator[ComparedSection]:
    lines_by_section = [
        _launch_lines_by_section(launch) if launch is not None else {} for launch in (left, right)
    ]
    for name in dict.fromkeys((*lines_by_section[0], *lines_by_section[1])):
        align = _align_lines_by_variable_name if name == "environment" else _align_lines
        lines = tuple(align(lines_by_section[0].get(name, ()), lines_by_section[1].get(name, ())))
        if lines:
            yield ComparedSection(name=name, lines=lines)


def _launch_lines_by_section(launch: Launch) -> dict[str, tuple[str, ...]]:
    """The lines of a Launch by section, without its secrets."""
    role = launch.roles[0]
    cards = len(role.placements[0].cards) if role.placements else 0
    environment = sorted(role.environment.items())
    return {
        "image": (launch.image or (launch.engine.name if launch.engine else ""),),
        "cards": (f"{len(role.placements)} × {cards}",),
        "argv": role.argv,
        "environment": tuple(f"{name}={value}" for name, value in environment),
        **{path: tuple(text.splitlines()) for path, text in sorted(launch.files.items())},
    }


def _align_lines_by_variable_name(
    left: Sequence[str], right: Sequence[str]
) -> Iterator[ComparedLine]:
    """``NAME=value`` lines paired by name."""
    sides = [{line.partition("=")[0]: line for line in lines} for lines in (left, right)]
    for name in sorted({*sides[0], *sides[1]}):
        yield ComparedLine(left=sides[0].get(name), right=sides[1].get(name))


def _align_lines(left: Sequence[str], right: Sequence[str]) -> Iterator[ComparedLine]:
    if max(len(left), len(right)) > _MAX_ALIGNED_LINES:
        yield from (ComparedLine(left=a, right=b) for a, b in zip_longest(left, right))
        return
    matcher = SequenceMatcher(a=left, b=right, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for offset in range(max(i_end - i, j_end - j)):
            yield ComparedLine(
                left=left[i + offset] if i + offset < i_end else None,
                right=right[j + offset] if j + offset < j_end else None,
            )
