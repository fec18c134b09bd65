"""One spec as two chips would run it, side by side; nothing is started and nothing is secret in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from apps.jobs.models import Job
from apps.jobs.services.plans import replicas_of
from apps.jobs.services.requests import JobRequest, SpecRefused, engine_check, job_settle
from apps.models import selectors as models
from apps.models.models import Artifact, DatasetVersion, ModelVersion
from controlplane.domain.accelerators import Chip
from controlplane.domain.claims import GangShape
from controlplane.domain.fields import Finding
from controlplane.ports import registry
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.differences import Difference, differences
from controlplane.ports.engines import Engine, FlagsChecked, RenderRequest, Task
from controlplane.ports.launches import InputTree, Launch, Placement

#: Longer texts are shown line beside line: finding what they share takes the square of their length.
_MOST_ALIGNED = 400
_MOST_UNFOLDED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The same place on both sides; None where a side has nothing there."""

    left: str | None
    right: str | None

    @property
    def differs(self) -> bool:
        return self.left != self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """``image``, ``argv``, ``environment``, or the path of a file."""

    name: str
    lines: tuple[Line, ...]

    @property
    def differing(self) -> int:
        return sum(line.differs for line in self.lines)

    @property
    def folded(self) -> bool:
        """A long text that is the same on both sides hides what matters."""
        return len(self.lines) > _MOST_UNFOLDED and not self.differing


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Two renderings of one spec."""

    chips: tuple[Chip, Chip]
    #: Why there is no rendering on a side; empty where there is one.
    findings: tuple[tuple[Finding, ...], tuple[Finding, ...]]
    #: None where a side has none.
    launches: tuple[Launch | None, Launch | None]
    sections: tuple[Section, ...]
    differences: tuple[Difference, ...]
    #: Fields of the spec that are not the same for both chips, by path.
    changed_fields: tuple[str, ...]
    flags: FlagsChecked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rendered:
    chip: Chip
    findings: tuple[Finding, ...] = ()
    spec: Mapping[str, Any] | None = None
    launch: Launch | None = None


def request_rendered(request: JobRequest, *, chips: tuple[Chip, Chip]) -> SideBySide:
    """What would run if the request were submitted for each of the chips.

    :raises SpecRefused: if there is no such engine, or it does not do that at all.
    """
    if findings := engine_check(request):
        raise SpecRefused(findings)
    return _beside(registry.engine(request.engine), *(_of_request(request, chip) for chip in chips))


def job_rendered(job: Job, *, chips: tuple[Chip, Chip]) -> SideBySide:
    """What runs of a job on each of the chips; ``{work}`` and the like are filled in by the cluster."""
    return _beside(registry.engine(job.engine), *(_of_job(job, chip) for chip in chips))


def _of_request(request: JobRequest, chip: Chip) -> _Rendered:
    settled = job_settle(replace(request, chips=(chip.name,)))
    if settled.spec is None:
        return _Rendered(chip=chip, findings=settled.findings)
    replicas, cards = replicas_of([chip], request.cards)
    return _rendered(
        engine=registry.engine(request.engine),
        task=Task(request.kind),
        spec=settled.spec,
        chip=chip,
        placements=_placements(replicas, cards),
        version=request.model_version,
        inputs=_inputs(request.model_version, request.dataset_version, request.code),
    )


def _of_job(job: Job, chip: Chip) -> _Rendered:
    engine, task = registry.engine(job.engine), Task(job.kind)
    if reason := engine.runs_on(task, chip):
        return _Rendered(chip=chip, findings=(Finding(field="chips", message=reason),))
    facts = models.model_facts(job.model_version) if job.model_version else None
    if findings := engine.check(task, job.spec, chip=chip, model=facts):
        return _Rendered(chip=chip, findings=findings)
    role = GangShape.from_json(job.shape).roles[0]
    return _rendered(
        engine=engine,
        task=task,
        spec=job.spec,
        chip=chip,
        placements=_placements(role.replicas, role.cards),
        version=job.model_version,
        inputs=_inputs(job.model_version, job.dataset_version, job.code),
    )


def _rendered(
    *,
    engine: Engine,
    task: Task,
    spec: Mapping[str, Any],
    chip: Chip,
    placements: tuple[Placement, ...],
    version: ModelVersion | None,
    inputs: tuple[InputTree, ...],
) -> _Rendered:
    request = RenderRequest(
        task=task,
        name="preview",
        spec=spec,
        chip=chip,
        placements=placements,
        inputs=inputs,
        model=models.model_facts(version) if version else None,
    )
    try:
        launch = engine.render(request)
    except ValueError as refusal:
        finding = Finding(field="chips", message=f"{chip.name}: {refusal}")
        return _Rendered(chip=chip, findings=(finding,), spec=spec)
    return _Rendered(chip=chip, spec=spec, launch=launch)


def _placements(replicas: int, cards: int) -> tuple[Placement, ...]:
    """On nodes that stand for those that the scheduler will choose."""
    return tuple(
        Placement(node=f"node-{index}", cards=tuple(range(cards))) for index in range(replicas)
    )


def _inputs(
    version: ModelVersion | None, dataset: DatasetVersion | None, code: Artifact | None
) -> tuple[InputTree, ...]:
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
            # What is shown is how it runs; that its bytes are gone is said where it is submitted.
            continue
    return tuple(trees)


def _beside(engine: Engine, left: _Rendered, right: _Rendered) -> SideBySide:
    both = left.launch is not None and right.launch is not None
    return SideBySide(
        chips=(left.chip, right.chip),
        findings=(left.findings, right.findings),
        launches=(left.launch, right.launch),
        sections=tuple(_sections(left.launch, right.launch)),
        differences=differences(left.launch, right.launch)
        if left.launch is not None and right.launch is not None
        else (),
        changed_fields=tuple(_changed(left.spec or {}, right.spec or {})) if both else (),
        flags=engine.profile().flags,
    )


def _changed(left: Mapping[str, Any], right: Mapping[str, Any], at: str = "") -> Iterator[str]:
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name), right.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _changed(one, other, f"{at}{name}.")
        elif one != other:
            yield f"{at}{name}"


def _sections(left: Launch | None, right: Launch | None) -> Iterator[Section]:
    parts = [_parts(launch) if launch is not None else {} for launch in (left, right)]
    for name in dict.fromkeys((*parts[0], *parts[1])):
        align = _by_name if name == "environment" else _aligned
        lines = tuple(align(parts[0].get(name, ()), parts[1].get(name, ())))
        if lines:
            yield Section(name=name, lines=lines)


def _parts(launch: Launch) -> dict[str, tuple[str, ...]]:
    """Everything of a Launch that is shown, as lines by section; never its secrets."""
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


def _by_name(left: Sequence[str], right: Sequence[str]) -> Iterator[Line]:
    """``NAME=value`` beside the same name."""
    sides = [{line.partition("=")[0]: line for line in lines} for lines in (left, right)]
    for name in sorted({*sides[0], *sides[1]}):
        yield Line(left=sides[0].get(name), right=sides[1].get(name))


def _aligned(left: Sequence[str], right: Sequence[str]) -> Iterator[Line]:
    if max(len(left), len(right)) > _MOST_ALIGNED:
        yield from (Line(left=a, right=b) for a, b in zip_longest(left, right))
        return
    matcher = SequenceMatcher(a=left, b=right, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for offset in range(max(i_end - i, j_end - j)):
            yield Line(
                left=left[i + offset] if i + offset < i_end else None,
                right=right[j + offset] if j + offset < j_end else None,
            )
