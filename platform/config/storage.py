"""Which apps are asked what they need before anything is deleted."""

from __future__ import annotations

from apps.jobs.services.storage import JobStorage
from apps.models.selectors.sources import connect
from apps.serving.selectors.occupancy import ServingStorage
from apps.workflows.services.storage import WorkflowStorage


def connect_sources() -> None:
    connect(JobStorage())
    connect(ServingStorage())
    connect(WorkflowStorage())
