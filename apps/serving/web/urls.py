from __future__ import annotations

from django.urls import path

from apps.serving.web import (
    api_keys,
    deployment_actions,
    deployments,
    playground,
)

urlpatterns = [
    path("deployments", deployments.deployments, name="deployments"),
    path("deployments/new", deployment_actions.deployment_new, name="deployment-new"),
    path("deployments/check", deployment_actions.deployment_check, name="deployment-check"),
    path("deployments/fields", deployment_actions.deployment_fields, name="deployment-fields"),
    path(
        "deployments/of/<str:uid>",
        deployment_actions.deployment_create_with_defaults,
        name="deployment-quick",
    ),
    path("deployments/<str:uid>", deployments.deployment, name="deployment"),
    path(
        "deployments/<str:uid>/charts/<str:chart>",
        deployments.deployment_chart,
        name="deployment-chart",
    ),
    path(
        "deployments/<str:uid>/logs/<str:replica>",
        deployments.deployment_log,
        name="deployment-log",
    ),
    path(
        "deployments/<str:uid>/revise",
        deployment_actions.deployment_revise,
        name="deployment-revise",
    ),
    path(
        "deployments/<str:uid>/revise/check",
        deployment_actions.revision_check,
        name="revision-check",
    ),
    path(
        "deployments/<str:uid>/revisions/<int:number>/roll-back",
        deployment_actions.deployment_roll_back,
        name="deployment-roll-back",
    ),
    path(
        "deployments/<str:uid>/scale", deployment_actions.deployment_scale, name="deployment-scale"
    ),
    path("deployments/<str:uid>/stop", deployment_actions.deployment_stop, name="deployment-stop"),
    path(
        "deployments/<str:uid>/start", deployment_actions.deployment_start, name="deployment-start"
    ),
    path(
        "deployments/<str:uid>/rollout/pause",
        deployment_actions.deployment_rollout_pause,
        name="deployment-rollout-pause",
    ),
    path(
        "deployments/<str:uid>/rollout/resume",
        deployment_actions.deployment_rollout_resume,
        name="deployment-rollout-resume",
    ),
    path(
        "deployments/<str:uid>/rollout/undo",
        deployment_actions.deployment_rollout_undo,
        name="deployment-rollout-undo",
    ),
    path(
        "deployments/<str:uid>/delete",
        deployment_actions.deployment_delete,
        name="deployment-delete",
    ),
    path("playground", playground.playground, name="playground"),
    path("playground/<str:uid>/chat", playground.playground_chat, name="playground-chat"),
    path("keys", api_keys.api_key_list, name="keys"),
    path("keys/new", api_keys.api_key_new_view, name="key-new"),
    path("keys/<str:uid>", api_keys.api_key_detail, name="key"),
    path("keys/<str:uid>/heard", api_keys.api_key_propagation, name="key-propagation"),
    path("keys/<str:uid>/rotate", api_keys.api_key_rotate_view, name="key-rotate"),
    path("keys/<str:uid>/revoke", api_keys.api_key_revoke_view, name="key-revoke"),
]
