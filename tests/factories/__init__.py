"""Rows as the product itself would make them, for tests of its interfaces."""

from __future__ import annotations

from tests.factories.accounts import team, user
from tests.factories.ailing import ailing_card
from tests.factories.alerts import firing_alerts
from tests.factories.defragmentations import defragmentation
from tests.factories.fleet import cluster
from tests.factories.jobs import failed, job, queue, running, schedule, succeeded
from tests.factories.measured import card_metrics, fault, history, source
from tests.factories.quantizations import quantized_version
from tests.factories.queues import queue_change
from tests.factories.registry import (
    ROWS,
    File,
    dataset_version,
    evaluation,
    model_files,
    model_version,
    stored,
)
from tests.factories.rollouts import rollout_over
from tests.factories.serving import api_key, deployment, replica, weight_download
from tests.factories.workflows import pipeline

__all__ = [
    "ROWS",
    "File",
    "ailing_card",
    "api_key",
    "card_metrics",
    "cluster",
    "dataset_version",
    "defragmentation",
    "deployment",
    "evaluation",
    "failed",
    "fault",
    "firing_alerts",
    "history",
    "job",
    "model_files",
    "model_version",
    "pipeline",
    "quantized_version",
    "queue",
    "queue_change",
    "replica",
    "rollout_over",
    "running",
    "schedule",
    "source",
    "stored",
    "succeeded",
    "team",
    "user",
    "weight_download",
]
