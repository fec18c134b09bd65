from __future__ import annotations

from django.urls import path

from apps.serving.web import deployments, keys, playground

urlpatterns = [
    path("deployments", deployments.deployments, name="deployments"),
    path("deployments/new", deployments.deployment_new, name="deployment-new"),
    path("deployments/of/<str:uid>", deployments.deployment_quick, name="deployment-quick"),
    path("deployments/<str:uid>", deployments.deployment, name="deployment"),
    path("deployments/<str:uid>/revise", deployments.deployment_revise, name="deployment-revise"),
    path("deployments/<str:uid>/scale", deployments.deployment_scale, name="deployment-scale"),
    path("deployments/<str:uid>/stop", deployments.deployment_stop, name="deployment-stop"),
    path("deployments/<str:uid>/start", deployments.deployment_start, name="deployment-start"),
    path("deployments/<str:uid>/delete", deployments.deployment_delete, name="deployment-delete"),
    path("playground", playground.playground, name="playground"),
    path("playground/<str:uid>/chat", playground.playground_chat, name="playground-chat"),
    path("keys", keys.keys, name="keys"),
    path("keys/new", keys.key_new, name="key-new"),
    path("keys/<str:uid>/revoke", keys.key_revoke, name="key-revoke"),
]
