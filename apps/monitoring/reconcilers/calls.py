"""One call to an address that somebody chose: whatever comes of it is an outcome, never an exception."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from django.utils import timezone

from apps.monitoring.services.webhooks import Outcome
from controlplane.domain.deliveries import arrived
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.ports.outbound import OutboundFailed
from controlplane.web.outbound import outbound

log = logging.getLogger(__name__)


def posted(url: str, *, body: bytes, headers: Mapping[str, str]) -> Outcome:
    """How a POST went, under the policy that the settings give."""
    at, began = timezone.now(), time.monotonic()
    try:
        answer = outbound().post(url, body=body, headers=headers)
    except (EgressRefused, OutboundFailed) as error:
        final = isinstance(error, EgressRefused)
        return Outcome(at=at, seconds=time.monotonic() - began, error=str(error), final=final)
    except Exception:
        # Whatever one address provokes must not keep the others waiting.
        log.exception("an outbound call failed in an unforeseen way")
        error_text = "the call failed in an unforeseen way; the server's log has it"
        return Outcome(at=at, seconds=time.monotonic() - began, error=error_text)
    return Outcome(
        at=at,
        seconds=answer.seconds,
        status=answer.status,
        answer=answer.body.decode("utf-8", "replace").replace("\0", ""),
        error=_complaint(answer.status),
    )


def _complaint(status: int) -> str:
    if arrived(status):
        return ""
    if 300 <= status < 400:
        return f"it answered {status}, a redirect, which is not followed; enter the final address"
    return f"it answered {status} where 200 to 299 was expected"
