"""The content of the home page: running and pending workloads, and actions required."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.accounts.selectors import is_company_administrator, roles_by_team
from apps.fleet.models import Card
from apps.fleet.selectors import is_fleet_operator
from apps.fleet.services import TAKEN
from apps.jobs import selectors as jobs
from apps.jobs.models import Job
from apps.models import selectors as models
from apps.models.models import ModelVersion
from apps.monitoring.selectors.self_monitoring import ControllerStatus, current_controllers
from apps.quotas import selectors as quotas
from apps.quotas.models import Queue
from apps.serving import selectors as serving
from apps.serving.models import Deployment
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.jobs.lifecycle import JobState
from controlplane.domain.serving.lifecycle import LIVE_DEPLOYMENT_STATES, DeploymentState

SHOWN = 8
#: Older failures are not shown.
FAILED_LATELY = timedelta(days=7)

_MOVING = (
    DeploymentState.STARTING,
    DeploymentState.UPDATING,
    DeploymentState.DEGRADED,
    DeploymentState.STOPPING,
)


class OnboardingStep(StrEnum):
    """A step from an empty installation to a deployed model."""

    MODEL = "model"
    DATASET = "dataset"
    FINETUNE = "finetune"
    DEPLOY = "deploy"
    TALK = "talk"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardingSteps:
    done: frozenset[OnboardingStep]
    #: The result of the first fine-tune, ready to be deployed.
    tuned: ModelVersion | None

    @property
    def next(self) -> OnboardingStep:
        return next(step for step in OnboardingStep if step not in self.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdministrationSummary:
    """Items for queue admins, operators and administrators; empty for other users."""

    #: Queues with pending claims or closed ones, the longest first.
    queues: list[Queue] = field(default_factory=list)
    #: Cards that are unusable without having been cordoned.
    cards: list[Card] = field(default_factory=list)
    #: Lagging controllers.
    controllers: tuple[ControllerStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeSummary:
    running: list[Job]
    waiting: list[Job]
    failed: list[Job]
    deployments: list[Deployment]
    duties: AdministrationSummary
    #: None once they are a beginner no more.
    steps: OnboardingSteps | None

    @property
    def unhealthy(self) -> list[Deployment]:
        return [one for one in self.deployments if one.state == DeploymentState.DEGRADED]

    @property
    def serving(self) -> list[Deployment]:
        return [one for one in self.deployments if one.state in LIVE_DEPLOYMENT_STATES]

    @property
    def action_required_count(self) -> int:
        """Number of items that require action."""
        duties = self.duties
        return len(self.failed) + len(self.unhealthy) + len(duties.cards) + len(duties.controllers)

    @property
    def needs_auto_refresh(self) -> bool:
        """Whether the page changes by itself."""
        moving = any(one.state in _MOVING for one in self.deployments)
        return bool(self.running or self.waiting) or moving


def home_of_user(user: User, *, at: datetime) -> HomeSummary:
    """Everything on their home page, a few of each."""
    recent = jobs.jobs_with_latest_attempt(jobs.jobs_visible(user))
    running = list(recent.filter(state=JobState.RUNNING)[:SHOWN])
    waiting = list(recent.filter(state=JobState.WAITING)[:SHOWN])
    late = recent.filter(state=JobState.FAILED, ended_at__gt=at - FAILED_LATELY)
    deployments = list(serving.deployments_visible(user)[:50])
    return HomeSummary(
        running=running,
        waiting=waiting,
        failed=list(late[:SHOWN]),
        deployments=deployments,
        duties=_administration_summary(user),
        steps=_onboarding_steps(user, deployments=deployments),
    )


def _administration_summary(user: User) -> AdministrationSummary:
    roles = roles_by_team(user).values()
    company = is_company_administrator(user)
    queues = company or any(roles_grant(held, Permission.MANAGE_QUEUES) for held in roles)
    fleet = is_fleet_operator(user)
    return AdministrationSummary(
        queues=_queues_with_pending_claims(user) if queues else [],
        cards=_unusable_cards() if fleet else [],
        controllers=current_controllers().needs_attention if company else (),
    )


def _queues_with_pending_claims(user: User) -> list[Queue]:
    queues: QuerySet[Any] = quotas.queues_visible(user)
    return list(queues.filter(waiting__gt=0).order_by("-waiting", "name")[:SHOWN])


def _unusable_cards() -> list[Card]:
    broken = Card.objects.filter(state__in=(CardState.ISOLATED, CardState.UNKNOWN))
    # What others have on a shared cluster is in order.
    broken = broken.exclude(state_reason=TAKEN)
    return list(broken.select_related("node")[:SHOWN])


def _onboarding_steps(user: User, *, deployments: list[Deployment]) -> OnboardingSteps | None:
    tuned = models.model_versions_usable(user).exclude(base=None).order_by("-id").first()
    if tuned is not None and deployments:
        return None
    return OnboardingSteps(
        done=frozenset(_completed_onboarding_steps(user, tuned=tuned)), tuned=tuned
    )


def _completed_onboarding_steps(
    user: User, *, tuned: ModelVersion | None
) -> Iterator[OnboardingStep]:
    if tuned is not None:
        yield from (OnboardingStep.MODEL, OnboardingStep.DATASET, OnboardingStep.FINETUNE)
        return
    if models.model_lines_visible(user).exists():
        yield OnboardingStep.MODEL
    if models.datasets_visible(user).exists():
        yield OnboardingStep.DATASET
