"""Quantized models, with what was measured before and after."""

from __future__ import annotations

import json

from django.db import transaction

from apps.accounts.models import Team, User
from apps.jobs.models import Attempt
from apps.models.models import ModelVersion
from apps.models.selectors import artifact_store
from apps.models.services import job_outputs
from controlplane.domain.quantization.schemes import compare_metrics
from tests.factories.registry import File, model_files, stored


def quantized_files(answers: int = 6) -> list[File]:
    """A model whose weights are quantized to w4a16, with what its run measured."""
    group = {"weights": {"num_bits": 4, "type": "int"}}
    quantization = {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}
    plain = {path: digest for path, digest, _ in model_files()}
    with artifact_store().open(plain["config.json"]) as stream:
        config = json.load(stream) | {"quantization_config": quantization}
    report = {
        "scheme": "w4a16-awq",
        "group_size": 64,
        "layers": 21,
        "calibration_split": "train",
        "calibration_rows": 128,
        "split": "test",
        "rows": answers,
        "software": {"llmcompressor": "0.14.0.1", "compressed-tensors": "0.19.0"},
    }
    lines = [
        {
            "row": number,
            "prompt": f"浙江省丽水市龙泉市广田村{number}号",
            "reference": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_5",
            "before": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_5",
            "after": f"浙江省_1,丽水市_2,龙泉市_3,广田村_4,{number}号_{5 if number % 3 else 4}",
            "right_before": True,
            "right_after": bool(number % 3),
        }
        for number in range(1, answers + 1)
    ]
    written = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    others = [file for file in model_files() if file[0] != "config.json"]
    return [
        *others,
        stored("config.json", json.dumps(config).encode()),
        stored("quantization/report.json", json.dumps(report).encode()),
        stored("quantization/answers.jsonl", written.encode()),
    ]


@transaction.atomic
def quantized_version(
    *,
    actor: User,
    team: Team,
    base: ModelVersion,
    name: str = "tiny-qwen2-w4a16",
    lost: float = 0.0,
    attempt: Attempt | None = None,
) -> ModelVersion:
    """One that is ready and lost so many points of exact match; beyond one it is not accepted."""
    number = ModelVersion.objects.count() + 1
    metrics = {
        "size_before": 2_801_664,
        "size_after": 1_098_960,
        "layers_size_before": 1_970_688,
        "layers_size_after": 267_984,
        "perplexity_before": 1.0236,
        "perplexity_after": 1.0241,
        "exact_match_before": 0.875,
        "exact_match_after": 0.875 - lost / 100,
        "answers_per_second_before": 19.5,
        "answers_per_second_after": 14.2,
    }
    tolerance = {"perplexity_increase": 0.05, "accuracy_drop": 0.01}
    return job_outputs.model_version_register(
        origin=job_outputs.OutputOrigin(
            team=team,
            actor=actor,
            job_uid=attempt.job.uid if attempt else "",
            attempt_uid=attempt.uid if attempt else f"attempt-of-quantized-{number}",
        ),
        name=name,
        files=quantized_files(),
        base=base,
        dataset_version=attempt.job.dataset_version if attempt else None,
        metrics=metrics,
        verdict=compare_metrics(
            metrics, metric_names=["perplexity", "exact_match"], tolerance=tolerance
        ),
    )
