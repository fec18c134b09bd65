"""Datasets, models, what was measured of them, and the catalog."""

from __future__ import annotations

from tests.functional.roles.permission_rules import (
    COMPANY,
    ENGINEERS,
    ROWS_FILE,
    action_row,
    page,
    rest,
)

_DECISION = {"reason": "looked at its answers"}
_UPLOAD = {"team": "{team}", "name": "fresh", "file": ROWS_FILE}

REST = (
    rest("GET", "datasets"),
    rest("POST", "datasets", may=ENGINEERS, body=_UPLOAD),
    rest("POST", "datasets/inspect", body={"file": ROWS_FILE}),
    rest("GET", "datasets/{dataset}"),
    rest("PATCH", "datasets/{dataset}", may=ENGINEERS, body={"description": "read"}),
    rest("DELETE", "datasets/{dataset}", may=ENGINEERS),
    rest("GET", "dataset-versions"),
    rest("GET", "dataset-versions/{dataset_version}"),
    rest("GET", "dataset-versions/{dataset_version}/rows"),
    rest("GET", "models"),
    rest("GET", "models/{line}"),
    rest("PATCH", "models/{line}", may=ENGINEERS, body={"description": "read"}),
    rest("PATCH", "models/{line}", may=COMPANY, body={"team": None}),
    rest("DELETE", "models/{line}", may=ENGINEERS),
    rest("GET", "model-versions"),
    rest("GET", "model-versions/folders"),
    rest(
        "POST",
        "model-versions/import",
        may=ENGINEERS,
        body={"team": "{team}", "name": "fresh", "path": "/nowhere"},
    ),
    rest(
        "POST",
        "model-versions/fetch",
        may=ENGINEERS,
        body={
            "team": "{team}",
            "name": "fresh",
            "hub": "huggingface",
            "repository": "nowhere",
            "revision": "main",
        },
    ),
    rest("GET", "model-versions/{version}"),
    rest("GET", "model-versions/{version}/lineage"),
    rest("POST", "model-versions/{version.failed}/retry", may=ENGINEERS),
    rest("POST", "model-versions/{version.failed}/cancel", may=ENGINEERS),
    rest("POST", "model-versions/{version.unfit}/accept", may=ENGINEERS, body=_DECISION),
    rest("POST", "model-versions/{version.unfit}/reject", may=ENGINEERS, body=_DECISION),
    rest("GET", "evaluations"),
    rest("GET", "evaluations/{evaluation}"),
    rest("GET", "evaluations/{evaluation}/report"),
    rest("GET", "artifacts/{artifact}"),
    rest("GET", "artifacts/{artifact}/files/answer.txt"),
    rest(
        "POST",
        "sizing",
        body={"catalog": "qwen2-7b-instruct", "chip": "cpu"},
    ),
    rest("GET", "catalog"),
    rest("GET", "catalog/qwen2-7b-instruct"),
)

PAGES = (
    page("/models"),
    page("/models/import"),
    page("/models/fetch"),
    page("/models/{line}"),
    page("/models/versions/{version}"),
    page("/models/versions/{version}/files/config.json"),
    action_row("/models/versions/{version.failed}/retry", may=ENGINEERS),
    action_row("/models/versions/{version.failed}/cancel", may=ENGINEERS),
    page("/models/versions/{version.unfit}/quantization"),
    action_row("/models/versions/{version.unfit}/accept", may=ENGINEERS, body=_DECISION),
    action_row("/models/versions/{version.unfit}/reject", may=ENGINEERS, body=_DECISION),
    page("/datasets"),
    page("/datasets/new"),
    page("/datasets/versions/{dataset_version}"),
    page("/datasets/versions/{dataset_version}/rows"),
    page("/datasets/versions/{dataset_version}/lengths"),
    page("/datasets/versions/{dataset_version}/files/train"),
    page("/datasets/{dataset}"),
    action_row("/datasets/check", quiet=True),
    page("/datasets/versions/{dataset_version}/lineage"),
    page("/models/sizing"),
    page("/models/sizing/curve.json"),
    page("/models/catalog"),
    page("/models/catalog/compare"),
    page("/models/catalog/qwen2-7b-instruct"),
)
