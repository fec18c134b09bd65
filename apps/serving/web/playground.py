"""The playground: chat with a deployment through the gateway.

Calls go through the gateway like any other, with an API key, so that limits apply and usage is counted. The
key is created for one user and team, is short-lived, and is stored only in that user's session, encrypted.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.serving import selectors
from apps.serving.models import Deployment
from apps.serving.selectors.gateways import PLAYGROUND_KEY_LIFETIME, PLAYGROUND_KEY_NAME
from apps.serving.services.gateways import api_key_create
from apps.serving.web.deployments import action_blockers
from apps.serving.web.forms import PlaygroundForm
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.domain.serving.model_kinds import Operation
from controlplane.persistence.encryption import DecryptionFailed, decrypt, encrypt
from controlplane.persistence.reasons import reason_from_json
from controlplane.web.reasons import render_reason

#: A key that expires sooner is replaced, so that it does not expire during a response.
MIN_KEY_LIFETIME = timedelta(minutes=2)
#: More than a user types; it stops a page in a loop.
KEY_REQUESTS_PER_MINUTE = 60
KEY_CONCURRENCY = 4
#: How long a gateway may take to get a new key.
KEY_PROPAGATION_SECONDS = 5.0
KEY_RETRY_SECONDS = 0.2
#: Without a byte for this long, the gateway counts as unreachable.
READ_TIMEOUT_SECONDS = 130.0
_SESSION = "playground_keys"


class GatewayUnreachable(Exception):
    """The gateway cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayResponse:
    """The gateway's response; closing ``chunks`` ends the call."""

    status: int
    content_type: str
    #: The ``Retry-After`` header in seconds; empty if there is none.
    retry_after: str
    chunks: Iterator[bytes]


def playground_key(*, session: SessionBase, user: User, team: Team, at: datetime) -> str:
    """The text of a key that stays valid for a while; created if there is none."""
    stored: dict[str, Any] = session.get(_SESSION, {})
    text = _decrypt_key(stored.get(team.uid), at=at)
    if text is None:
        expires_at = at + PLAYGROUND_KEY_LIFETIME
        _key, text = api_key_create(
            actor=user,
            team=team,
            name=f"{PLAYGROUND_KEY_NAME} ({user.username})"[:80],
            at=at,
            expires_at=expires_at,
            requests_per_minute=KEY_REQUESTS_PER_MINUTE,
            concurrency=KEY_CONCURRENCY,
        )
        sealed = base64.b64encode(encrypt(text.encode())).decode()
        session[_SESSION] = {
            **stored,
            team.uid: {"sealed": sealed, "expires_at": expires_at.isoformat()},
        }
    return text


def _decrypt_key(stored: Mapping[str, str] | None, *, at: datetime) -> str | None:
    if stored is None or datetime.fromisoformat(stored["expires_at"]) - at < MIN_KEY_LIFETIME:
        return None
    try:
        return decrypt(base64.b64decode(stored["sealed"])).decode()
    except DecryptionFailed:
        return None


def chat_completion(*, key: str, body: Mapping[str, Any]) -> GatewayResponse:
    """Post a chat completion; the response is streamed as it is read.

    A gateway that does not have the key yet is retried for a few seconds.

    :raises GatewayUnreachable: if it cannot be reached.
    """
    deadline = time.monotonic() + KEY_PROPAGATION_SECONDS
    while True:
        connection, response = _post_to_gateway("/v1/chat/completions", key=key, body=body)
        if response.status != http.HTTPStatus.UNAUTHORIZED or time.monotonic() > deadline:
            return GatewayResponse(
                status=response.status,
                content_type=response.headers.get("Content-Type", "application/json"),
                retry_after=response.headers.get("Retry-After", ""),
                chunks=_body_chunks(connection, response),
            )
        connection.close()
        time.sleep(KEY_RETRY_SECONDS)


def _post_to_gateway(
    path: str, *, key: str, body: Mapping[str, Any]
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    parts = urlsplit(settings.NINEFOLD_GATEWAY_URL)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=READ_TIMEOUT_SECONDS)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        connection.request(
            "POST", parts.path.rstrip("/") + path, json.dumps(body).encode(), headers
        )
        return connection, connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise GatewayUnreachable(f"{settings.NINEFOLD_GATEWAY_URL}: {error}") from error


def _body_chunks(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> Iterator[bytes]:
    """Chunks of the body. Closing the iterator closes the connection, which ends the generation."""
    with closing(connection), closing(response):
        while chunk := response.read1(16384):
            yield chunk


#: At most this much of an error response is read.
MAX_ERROR_BYTES = 65536
#: Parameters of a request that are passed on to the gateway.
FORWARDED_PARAMETERS = ("messages", "temperature", "top_p", "max_tokens", "stop", "seed")


@login_required
def playground(request: AuthenticatedRequest) -> HttpResponse:
    """The page; without JavaScript its form returns the page with the whole response."""
    rows = _deployments_ready_first(request)
    uid = request.POST.get("deployment") or request.GET.get("deployment", "")
    chosen = next((row for row in rows if row.uid == uid), None) or next(iter(rows), None)
    bound = request.method == "POST" and chosen is not None
    requested = request.POST.get("model") or request.GET.get("model", "")
    names = _model_names(chosen) if chosen else []
    model = requested if requested in names else next(iter(names), "")
    form = PlaygroundForm(request.POST if bound else None)
    conversation: list[dict[str, str]] = []
    if bound and chosen is not None and form.is_valid():
        conversation = _chat_messages(request, chosen, form, model=model)
    context = {
        "deployments": rows,
        "chosen": chosen,
        "model": model,
        "model_names": names,
        "missing": bool(uid) and (chosen is None or chosen.uid != uid),
        "not_ready": action_blockers(request, chosen).playground if chosen else "",
        "denied_reason": _call_denied_reason(request, chosen) if chosen else "",
        "form": form,
        "conversation": conversation,
    }
    return render(request, "serving/playground.html", context)


def _deployments_ready_first(request: AuthenticatedRequest) -> list[Deployment]:
    """Deployments that chat: ready ones that the user may call, other ready ones, then the rest; by name.

    Those whose engine is not installed are listed too.
    """
    visible = list(selectors.deployments_visible(request.user).order_by("name"))
    operations = selectors.newest_operations(visible)
    rows = [row for row in visible if Operation.CHAT in (operations[row.pk] or (Operation.CHAT,))]
    roles = accounts.roles_by_team(request.user)

    def rank(row: Deployment) -> tuple[bool, bool]:
        own = roles.get(row.team_id, frozenset())
        return row.state != DeploymentState.READY, not roles_grant(own, Permission.MANAGE_KEYS)

    return sorted(rows, key=rank)


def _model_names(found: Deployment) -> list[str]:
    """The names that requests to the deployment may have: its own, and those of its LoRA adapters."""
    adapters = selectors.revision_adapters(selectors.newest_revision(found))
    return [found.name, *adapters.values_list("name", flat=True)]


def _call_denied_reason(request: AuthenticatedRequest, found: Deployment) -> str:
    """Why the user may not call it; empty if they may. Calls use the team's limits, so viewing is not enough."""
    if roles_grant(accounts.roles_of(request.user, found.team), Permission.MANAGE_KEYS):
        return ""
    message = _(
        "Your role in team %(team)s does not allow requests to its deployments. An "
        "administrator can change it."
    )
    return message % {"team": found.team}


def _call_deployment(
    request: AuthenticatedRequest, found: Deployment, body: dict[str, Any], *, model: str
) -> GatewayResponse:
    """Call the deployment.

    :param model: its name or that of one of its LoRA adapters.
    :raises PermissionRefused: if the user may not manage keys of the team.
    :raises GatewayUnreachable: if the gateway cannot be reached.
    """
    accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=found.team)
    key = playground_key(
        session=request.session, user=request.user, team=found.team, at=timezone.now()
    )
    return chat_completion(key=key, body={**body, "model": model})


def _chat_messages(
    request: AuthenticatedRequest, found: Deployment, form: PlaygroundForm, *, model: str
) -> list[dict[str, str]]:
    """The user's message and the response, or the error."""
    question = {"role": "user", "content": form.cleaned_data["message"]}
    try:
        reply = _call_deployment(
            request, found, {"messages": form.messages(), **form.parameters()}, model=model
        )
        whole = b"".join(reply.chunks)
        if reply.status != HTTPStatus.OK:
            return [
                question,
                {"role": "error", "content": _gateway_error_message(reply.status, whole)},
            ]
        content = json.loads(whole)["choices"][0]["message"]["content"]
    except (GatewayUnreachable, OSError, ValueError, LookupError) as unreachable:
        return [question, {"role": "error", "content": _unreachable_message(unreachable)}]
    return [question, {"role": "assistant", "content": content}]


def _unreachable_message(error: Exception) -> str:
    message = _("The gateway cannot be reached: %(error)s")
    return message % {"error": error}


def _gateway_error_message(status: int, content: bytes) -> str:
    """The message in the gateway's error, or at least its status."""
    try:
        error = json.loads(content)["error"]
        message = reason_from_json(error.get("reason")) or str(error["message"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return _("The gateway returned status %(status)s.") % {"status": status}
    return render_reason(message)


@login_required
@require_POST
def playground_chat(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """The gateway's stream of server-sent events as it comes, or ``{"error": {"message": …}}``.

    The status is the gateway's; 502 if it cannot be reached, 403 for users who may only view.
    """
    found = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    try:
        requested = json.loads(request.body)
        body = {name: requested[name] for name in FORWARDED_PARAMETERS if name in requested}
        model = str(requested.get("model") or found.name)
    except (ValueError, TypeError, AttributeError):
        return _json_error(
            HTTPStatus.BAD_REQUEST, _("The body must be a JSON object with the messages.")
        )
    if model not in (names := _model_names(found)):
        message = _("%(deployment)s has no model %(model)s; it serves %(names)s.")
        values = {"deployment": found.name, "model": model, "names": ", ".join(names)}
        return _json_error(HTTPStatus.NOT_FOUND, message % values)
    streaming = {"stream": True, "stream_options": {"include_usage": True}}
    try:
        reply = _call_deployment(request, found, {**body, **streaming}, model=model)
    except accounts.PermissionRefused as refusal:
        return _json_error(HTTPStatus.FORBIDDEN, render_reason(str(refusal)))
    except GatewayUnreachable as unreachable:
        return _json_error(HTTPStatus.BAD_GATEWAY, _unreachable_message(unreachable))
    if reply.status != HTTPStatus.OK:
        return _gateway_error_response(reply)
    response = StreamingHttpResponse(reply.chunks, content_type=reply.content_type)
    response["Cache-Control"] = "no-store"
    # A reverse proxy must not buffer the stream.
    response["X-Accel-Buffering"] = "no"
    return response


def _gateway_error_response(reply: GatewayResponse) -> JsonResponse:
    content = b"".join(reply.chunks)[:MAX_ERROR_BYTES]
    response = _json_error(reply.status, _gateway_error_message(reply.status, content))
    if reply.retry_after:
        response["Retry-After"] = reply.retry_after
    return response


def _json_error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": {"message": message}}, status=status)
