"""From what somebody asks for to a job, by the service that everybody's jobs come through."""

from __future__ import annotations

import logging

from apps.jobs import services
from apps.jobs.models import Job
from config.demo.company import Company
from config.demo.workload import Request
from controlplane.domain.jobs.lifecycle import JobKind

log = logging.getLogger(__name__)


def submit(company: Company, request: Request) -> Job | None:
    """The job; None if the product refuses it, as it would refuse a person."""
    group = company.groups[request.team]
    topic = group.founding.topics[request.topic]
    try:
        return services.job_submit(
            actor=group.engineer,
            team=group.team,
            request=services.JobRequest(
                kind=request.kind,
                name=_name(request, topic),
                spec=_spec(request),
                queue=group.queue,
                engine=request.engine,
                model_version=None if request.kind is JobKind.SCRIPT else company.model,
                dataset_version=None if request.kind is JobKind.SCRIPT else group.dataset,
                output_name=topic.replace(" ", "-") if request.kind is JobKind.FINETUNE else "",
                chips=request.chips,
                cards=request.cards,
            ),
        )
    except services.SpecRefused as refusal:
        log.warning("a job of the demonstration was refused", extra={"reason": str(refusal)})
        return None


def _name(request: Request, topic: str) -> str:
    match request.kind:
        case JobKind.EVALUATE:
            return f"measure {topic}"
        case JobKind.SCRIPT:
            return f"prepare rows for {topic}"
        case _:
            return f"{topic}, learning rate {request.learning_rate:g}"


def _spec(request: Request) -> dict[str, object]:
    match request.kind:
        case JobKind.EVALUATE:
            return {"split": "test"}
        case JobKind.SCRIPT:
            return {"argv": ["python", "prepare.py"], "maximum_run_time_seconds": 6 * 3600}
        case _:
            return {"learning_rate": request.learning_rate, "method": "lora"}
