from __future__ import annotations

from django.urls import path

from apps.serving.web import api_keys, deployments, playground
from apps.serving.web import deployment_actions as actions

_DEPLOYMENT = "deployments/<str:uid>"

urlpatterns = [
    path("deployments", deployments.deployments, name="deployments"),
    path("deployments/new", actions.deployment_new, name="deployment-new"),
    path("deployments/check", actions.deployment_check, name="deployment-check"),
    path("deployments/fields", actions.deployment_fields, name="deployment-fields"),
    path(
        "deployments/of/<str:uid>", actions.deployment_create_with_defaults, name="deployment-quick"
    ),
    path(_DEPLOYMENT, deployments.deployment, name="deployment"),
    path(
        f"{_DEPLOYMENT}/charts/<str:chart>", deployments.deployment_chart, name="deployment-chart"
    ),
    path(f"{_DEPLOYMENT}/logs/<str:replica>", deployments.deployment_log, name="deployment-log"),
    path(f"{_DEPLOYMENT}/revise", actions.deployment_revise, name="deployment-revise"),
    path(f"{_DEPLOYMENT}/revise/check", actions.revision_check, name="revision-check"),
    path(
        f"{_DEPLOYMENT}/revisions/<int:number>/roll-back",
        actions.deployment_roll_back,
        name="deployment-roll-back",
    ),
    path(f"{_DEPLOYMENT}/scale", actions.deployment_scale, name="deployment-scale"),
    path(f"{_DEPLOYMENT}/stop", actions.deployment_stop, name="deployment-stop"),
    path(f"{_DEPLOYMENT}/start", actions.deployment_start, name="deployment-start"),
    path(
        f"{_DEPLOYMENT}/rollout/pause",
        actions.deployment_rollout_pause,
        name="deployment-rollout-pause",
    ),
    path(
        f"{_DEPLOYMENT}/rollout/resume",
        actions.deployment_rollout_resume,
        name="deployment-rollout-resume",
    ),
    path(
        f"{_DEPLOYMENT}/rollout/undo",
        actions.deployment_rollout_undo,
        name="deployment-rollout-undo",
    ),
    path(f"{_DEPLOYMENT}/delete", actions.deployment_delete, name="deployment-delete"),
    path("playground", playground.playground, name="playground"),
    path("playground/<str:uid>/chat", playground.playground_chat, name="playground-chat"),
    path("keys", api_keys.api_key_list, name="keys"),
    path("keys/new", api_keys.api_key_new_view, name="key-new"),
    path("keys/<str:uid>", api_keys.api_key_detail, name="key"),
    path("keys/<str:uid>/heard", api_keys.api_key_propagation, name="key-propagation"),
    path("keys/<str:uid>/rotate", api_keys.api_key_rotate_view, name="key-rotate"),
    path("keys/<str:uid>/revoke", api_keys.api_key_revoke_view, name="key-revoke"),
]
