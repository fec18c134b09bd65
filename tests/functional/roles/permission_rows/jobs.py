"""Jobs, the engines that run them, and pipelines of them."""

from __future__ import annotations

from tests.functional.roles.permission_rules import (
    CODE_FILE,
    ENGINEERS,
    OWNER,
    action_row,
    page,
    rest,
)

_JOB = {
    "kind": "script",
    "name": "try",
    "team": "{team}",
    "queue": "{queue.name}",
    "spec": {"argv": ["true"]},
}
_MODEL_JOB = {
    "kind": "evaluate",
    "name": "try",
    "team": "{team}",
    "queue": "{queue.name}",
    "model_version": "{version}",
    "dataset_version": "{dataset_version}",
}
_PIPELINE = {
    "name": "try",
    "team": "{team}",
    "queue": "{queue.name}",
    "model_version": "{version}",
    "steps": [{"kind": "deploy", "deployment_name": "fresh"}],
}

REST = (
    rest("POST", "code", may=ENGINEERS, body={"team": "{team}", "file": CODE_FILE}),
    rest("GET", "engines"),
    rest("GET", "jobs"),
    rest("POST", "jobs", may=ENGINEERS, body=_JOB),
    rest("POST", "jobs/check", body=_MODEL_JOB),
    rest("POST", "jobs/render", body={**_MODEL_JOB, "on": ["cpu", "nvidia-h800"]}),
    rest("GET", "jobs/{job}"),
    rest("GET", "jobs/{job}/attempts"),
    rest("POST", "jobs/{job}/cancel", may=ENGINEERS),
    rest("GET", "jobs/{job}/curve"),
    rest("GET", "jobs/{job}/events"),
    rest("GET", "jobs/{job.succeeded}/log"),
    rest("POST", "jobs/{job.failed}/retry", may=ENGINEERS),
    rest("GET", "pipelines"),
    rest("POST", "pipelines", may=ENGINEERS, body=_PIPELINE),
    rest("POST", "pipelines/check", body=_PIPELINE),
    rest("GET", "pipelines/{pipeline}"),
    rest("GET", "pipelines/{pipeline}/events"),
    rest("POST", "pipelines/{pipeline}/cancel", may=ENGINEERS),
    rest("POST", "pipelines/{pipeline.failed}/retry", may=ENGINEERS),
    rest(
        "POST",
        "pipelines/{pipeline.held}/gate-override",
        may=ENGINEERS,
        body={"reason": "I looked"},
    ),
)

PAGES = (
    page("/jobs"),
    page("/engines"),
    page("/engines/vllm"),
    page("/jobs/new"),
    page("/jobs/new/finetune"),
    page("/jobs/new/evaluate"),
    page("/jobs/new/quantize"),
    page("/jobs/new/script"),
    page("/jobs/{job}"),
    action_row("/jobs/{job}/cancel", may=ENGINEERS),
    action_row("/jobs/{job.failed}/retry", may=ENGINEERS),
    page("/jobs/{job}/curve/loss"),
    page("/jobs/{job}/fault-marks"),
    action_row("/jobs/cancel", body={"uid": "{job}"}, quiet=True),
    action_row("/jobs/filters", body={"name": "fresh", "query": "state=failed"}),
    action_row("/jobs/filters/{filter}", may=OWNER, hidden=True, body={"act": "default"}),
    page("/jobs/compare"),
    page("/jobs/compare/curve"),
    action_row("/jobs/new/script/check"),
    action_row("/jobs/new/script/rendered"),
    page("/jobs/{job.succeeded}/log"),
    page("/jobs/{job.script}/files"),
    page("/jobs/{job.script}/files/answer.txt"),
    page("/pipelines"),
    page("/pipelines/new"),
    action_row("/pipelines/new/check"),
    page("/pipelines/{pipeline}"),
    action_row("/pipelines/{pipeline}/cancel", may=ENGINEERS),
    action_row("/pipelines/{pipeline.failed}/retry", may=ENGINEERS),
    action_row(
        "/pipelines/{pipeline.held}/approve-anyway", may=ENGINEERS, body={"reason": "I looked"}
    ),
)
