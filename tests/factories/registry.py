"""Datasets, models and their evaluations, with small files in the artifact store."""

from __future__ import annotations

import io
import json
import struct

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, Evaluation, ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services import datasets, job_outputs

#: Held out by the dataset's own rule: at least one row is not for training.
ROWS = 40
File = tuple[str, str, int]


def dataset_version(
    *, actor: User, team: Team, name: str = "addresses", rows: int = ROWS
) -> DatasetVersion:
    lines = [
        {"instruction": f"浙江省丽水市龙泉市广田村{n}组", "output": f"浙江省_1,广田村{n}组_4B"}
        for n in range(rows)
    ]
    body = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()
    return datasets.dataset_upload(
        actor=actor,
        team=team,
        name=name,
        stream=io.BytesIO(body),
        filename=f"{name}.jsonl",
        description="Where parcels go",
    )


def stored(path: str, content: bytes) -> File:
    """A file in the artifact store."""
    blob = artifact_store().put([content])
    return path, blob.digest, blob.size


def model_files() -> list[File]:
    """A model small enough for a unit of a test, and real enough to be registered."""
    config = {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 512}
    header = json.dumps({"w": {"dtype": "F32", "shape": [4, 8], "data_offsets": [0, 128]}}).encode()
    weights = struct.pack("<Q", len(header)) + header + bytes(128)
    return [
        stored("config.json", json.dumps(config).encode()),
        stored("model.safetensors", weights),
    ]


def model_version(
    *,
    actor: User,
    team: Team,
    name: str = "tiny-qwen2",
    base: ModelVersion | None = None,
    trained_on: DatasetVersion | None = None,
    job: Job | None = None,
) -> ModelVersion:
    """One that is ready; as if a job had made it."""
    number = ModelVersion.objects.count() + 1
    origin = job_outputs.OutputOrigin(
        team=team,
        actor=actor,
        job_uid=job.uid if job else "",
        attempt_uid=f"attempt-of-model-{number}",
    )
    return job_outputs.model_version_register(
        origin=origin,
        name=name,
        files=model_files(),
        base=base,
        dataset_version=trained_on,
        metrics={"loss": 0.4321} if job else {},
    )


def evaluation(
    *, model: ModelVersion, dataset: DatasetVersion, exact_match: float = 0.75, actor: User
) -> Evaluation:
    number = Evaluation.objects.count() + 1
    team = dataset.dataset.team
    return job_outputs.evaluation_register(
        origin=job_outputs.OutputOrigin(
            team=team, actor=actor, job_uid="", attempt_uid=f"attempt-of-evaluation-{number}"
        ),
        model_version=model,
        dataset_version=dataset,
        split="validation",
        files=[stored("report.json", f'{{"exact_match": {exact_match}}}'.encode())],
        metrics={"exact_match": exact_match, "perplexity": 3.25},
    )
