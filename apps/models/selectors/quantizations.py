"""A quantized version beside the one that it was made from: sizes, figures, answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.models.models import ModelVersion
from apps.models.selectors import NoSuchFile, artifact_file
from controlplane.domain.quantization import Judged, verdict
from controlplane.domain.specs.evaluation import METRICS
from controlplane.ports.artifacts import BlobMissing

ANSWERS = "quantization/answers.jsonl"
REPORT = "quantization/report.json"
#: Of the file of answers no more is read for a page.
_MOST_READ = 4 << 20
_MOST_SHOWN = 20
_LONGEST_SHOWN = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One figure before and after."""

    name: str
    before: float | None
    after: float | None

    @property
    def share(self) -> float | None:
        """After as a share of before."""
        return self.after / self.before if self.before and self.after is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    row: int
    prompt: str
    reference: str
    before: str
    after: str
    right_before: bool
    right_after: bool

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Examples, those that changed first, and how many there are of each sort."""

    shown: tuple[Answer, ...]
    total: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    #: Bytes of all tensors, and of the layers that lost precision.
    size: Pair
    layers_size: Pair
    #: Answers a second; where it was run, which need not be where it will serve.
    speed: Pair
    judged: tuple[Judged, ...]
    answers: Answers
    #: How it was made, as the run says: group size, rows of calibration, versions of the software.
    report: Mapping[str, Any]


def is_quantized(version: ModelVersion) -> bool:
    return bool(version.scheme or version.format)


def quantization_of(
    version: ModelVersion, *, tolerance: Mapping[str, float | None]
) -> Quantization:
    """What its run measured, against that tolerance."""
    metrics = version.metrics
    wanted = [name for name in METRICS if f"{name}_before" in metrics]
    return Quantization(
        size=_pair(metrics, "size"),
        layers_size=_pair(metrics, "layers_size"),
        speed=_pair(metrics, "answers_per_second"),
        judged=verdict(metrics, wanted=wanted, tolerance=tolerance).judged,
        answers=_answers(version),
        report=_report(version),
    )


def _pair(metrics: Mapping[str, Any], name: str) -> Pair:
    def figure(when: str) -> float | None:
        value = metrics.get(f"{name}_{when}")
        return value if isinstance(value, int | float) else None

    return Pair(name=name, before=figure("before"), after=figure("after"))


def _answers(version: ModelVersion) -> Answers:
    answers = []
    for line in _read(version, ANSWERS).splitlines():
        try:
            row = json.loads(line)
            answers.append(_answer(row))
        except (ValueError, KeyError, TypeError):
            # The last line that was read may be cut, and the file is the run's, not ours.
            continue
    order = sorted(answers, key=lambda each: (not each.changed, each.row))
    return Answers(
        shown=tuple(order[:_MOST_SHOWN]),
        total=len(answers),
        changed=sum(answer.changed for answer in answers),
    )


def _answer(row: Mapping[str, Any]) -> Answer:
    texts = {
        name: str(row[name])[:_LONGEST_SHOWN] for name in ("prompt", "reference", "before", "after")
    }
    return Answer(
        row=int(row["row"]),
        right_before=bool(row["right_before"]),
        right_after=bool(row["right_after"]),
        **texts,
    )


def _report(version: ModelVersion) -> Mapping[str, Any]:
    try:
        report = json.loads(_read(version, REPORT))
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _read(version: ModelVersion, path: str) -> str:
    """The beginning of a file of its artifact; empty where there is none."""
    if version.artifact is None:
        return ""
    try:
        stream, _size = artifact_file(version.artifact, path)
    except (NoSuchFile, BlobMissing):
        return ""
    with stream:
        return stream.read(_MOST_READ).decode(errors="replace")
