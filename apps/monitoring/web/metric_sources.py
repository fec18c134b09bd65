"""Deletion of metric sources and revocation of agent tokens, which end the faults that they reported."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet.selectors import require_fleet_operator
from apps.monitoring.services import metric_ingestion
from apps.telemetry.selectors import metric_sources_visible, node_tokens_visible


@login_required
@require_POST
def metric_source_delete_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    found = get_object_or_404(metric_sources_visible(request.user), uid=uid)
    metric_ingestion.metric_source_delete(source=found, actor=request.user, at=timezone.now())
    messages.success(request, _("Metric source %(name)s deleted.") % {"name": found.name})
    return redirect("sources")


@login_required
@require_POST
def agent_token_revoke_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_fleet_operator(request.user)
    token = get_object_or_404(node_tokens_visible(request.user), uid=uid)
    metric_ingestion.agent_token_revoke(token=token, actor=request.user, at=timezone.now())
    message = _("Token of %(node)s revoked. Metrics sent with it are refused.")
    messages.success(request, message % {"node": token.node})
    return redirect("agents")
