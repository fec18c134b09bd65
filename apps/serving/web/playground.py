"""Trying a deployment out by hand."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.serving import selectors
from apps.serving.models import Deployment
from apps.serving.web import gateway_calls
from apps.serving.web.deployments import acts_on
from apps.serving.web.forms import PlaygroundForm
from apps.serving.web.gateway_calls import Answer, GatewayAway
from controlplane.domain.permissions import Permission, allows
from controlplane.domain.serving import DeploymentState
from controlplane.web.sentences import said

#: An answer that is no stream is an error, and errors are short.
MOST_OF_AN_ERROR = 65536
#: What of a request is passed on.
PARAMETERS = ("messages", "temperature", "top_p", "max_tokens", "stop", "seed")


@login_required
def playground(request: SignedIn) -> HttpResponse:
    """The page; without scripts its form is answered with the page again and the whole answer."""
    rows = _ready_first(request)
    uid = request.POST.get("deployment") or request.GET.get("deployment", "")
    chosen = next((row for row in rows if row.uid == uid), None) or next(iter(rows), None)
    bound = request.method == "POST" and chosen is not None
    form = PlaygroundForm(request.POST if bound else None)
    turns: list[dict[str, str]] = []
    if bound and chosen is not None and form.is_valid():
        turns = _turns(request, chosen, form)
    context = {
        "deployments": rows,
        "chosen": chosen,
        "missing": bool(uid) and (chosen is None or chosen.uid != uid),
        "not_ready": acts_on(request, chosen).talk if chosen else "",
        "why_not": _why_not(request, chosen) if chosen else "",
        "form": form,
        "turns": turns,
    }
    return render(request, "serving/playground.html", context)


def _ready_first(request: SignedIn) -> list[Deployment]:
    """Those that answer and that they may call, then those that answer, then the others; by name."""
    rows = selectors.deployments_visible(request.user).order_by("name")
    roles = accounts.roles_by_team(request.user)

    def rank(row: Deployment) -> tuple[bool, bool]:
        own = roles.get(row.team_id, frozenset())
        return row.state != DeploymentState.READY, not allows(own, Permission.MANAGE_KEYS)

    return sorted(rows, key=rank)


def _why_not(request: SignedIn, found: Deployment) -> str:
    """Why they may not call it; empty if they may. Calls count against the team, so looking is not enough."""
    if allows(accounts.roles_of(request.user, found.team), Permission.MANAGE_KEYS):
        return ""
    words = _(
        "Your role in team %(team)s lets you look, not call its deployments; "
        "an administrator can change that."
    )
    return words % {"team": found.team}


def _ask(request: SignedIn, found: Deployment, body: dict[str, Any]) -> Answer:
    """:raises PermissionRefused: if they may not have a key, and so not call either.
    :raises GatewayAway: if the gateway cannot be reached.
    """
    accounts.require(request.user, Permission.MANAGE_KEYS, team=found.team)
    key = gateway_calls.key_for(
        session=request.session, user=request.user, team=found.team, at=timezone.now()
    )
    return gateway_calls.chat(key=key, body={**body, "model": found.name})


def _turns(request: SignedIn, found: Deployment, form: PlaygroundForm) -> list[dict[str, str]]:
    """The question and the answer, or what went wrong."""
    question = {"role": "user", "content": form.cleaned_data["message"]}
    try:
        answer = _ask(request, found, {"messages": form.messages(), **form.parameters()})
        whole = b"".join(answer.chunks)
        if answer.status != HTTPStatus.OK:
            return [question, {"role": "error", "content": _refusal(answer.status, whole)}]
        content = json.loads(whole)["choices"][0]["message"]["content"]
    except (GatewayAway, OSError, ValueError, LookupError) as away:
        return [question, {"role": "error", "content": _away(away)}]
    return [question, {"role": "assistant", "content": content}]


def _away(error: Exception) -> str:
    words = _("The gateway does not answer: %(error)s")
    return words % {"error": error}


def _refusal(status: int, content: bytes) -> str:
    """What the gateway said, or at least with which status it refused."""
    try:
        message = json.loads(content)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        return _("The gateway answered with status %(status)s.") % {"status": status}
    return said(str(message))


@login_required
@require_POST
def playground_chat(request: SignedIn, uid: str) -> HttpResponseBase:
    """The gateway's stream of server-sent events as it comes, or ``{"error": {"message": …}}``.

    The status is the gateway's; 502 if it cannot be reached, 403 for those who may only look.
    """
    found = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    try:
        asked = json.loads(request.body)
        body = {name: asked[name] for name in PARAMETERS if name in asked}
    except (ValueError, TypeError):
        return _error(
            HTTPStatus.BAD_REQUEST, _("The body must be a JSON object with the messages.")
        )
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    try:
        answer = _ask(request, found, {**body, **streaming})
    except accounts.PermissionRefused as refusal:
        return _error(HTTPStatus.FORBIDDEN, said(str(refusal)))
    except GatewayAway as away:
        return _error(HTTPStatus.BAD_GATEWAY, _away(away))
    if answer.status != HTTPStatus.OK:
        return _refused(answer)
    response = StreamingHttpResponse(answer.chunks, content_type=answer.content_type)
    response["Cache-Control"] = "no-store"
    # A proxy in front must not gather the stream.
    response["X-Accel-Buffering"] = "no"
    return response


def _refused(answer: Answer) -> JsonResponse:
    content = b"".join(answer.chunks)[:MOST_OF_AN_ERROR]
    response = _error(answer.status, _refusal(answer.status, content))
    if answer.retry_after:
        response["Retry-After"] = answer.retry_after
    return response


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": {"message": message}}, status=status)
