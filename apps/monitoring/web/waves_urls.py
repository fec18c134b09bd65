from __future__ import annotations

from django.urls import path

from apps.monitoring.web import waves
from controlplane.domain.waves import RolloutEvent

_ONE = "fleet/waves/<str:uid>"

urlpatterns = [
    path("fleet/waves", waves.rollouts, name="rollouts"),
    path("fleet/waves/new", waves.rollout_new, name="rollout-new"),
    path(_ONE, waves.rollout, name="rollout"),
    path(f"{_ONE}/pause", waves.rollout_steer, {"event": RolloutEvent.PAUSE}, name="rollout-pause"),
    path(
        f"{_ONE}/resume", waves.rollout_steer, {"event": RolloutEvent.RESUME}, name="rollout-resume"
    ),
    path(
        f"{_ONE}/cancel", waves.rollout_steer, {"event": RolloutEvent.CANCEL}, name="rollout-cancel"
    ),
]
