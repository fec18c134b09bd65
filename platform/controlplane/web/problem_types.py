"""What each problem type of the REST API means: the page that ``type`` of a problem leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ProblemType(NamedTuple):
    #: HTTP status codes with which it comes.
    statuses: str
    #: What happened, and what a caller does about it.
    meaning: Promise


#: By code, in alphabetical order.
PROBLEM_TYPES: Mapping[str, ProblemType] = {
    "acceptance-refused": ProblemType(
        "409", _("The version cannot be accepted or rejected in its state.")
    ),
    "address-refused": ProblemType(
        "422",
        _("The address may not be reached from here: it is private, or its scheme is not allowed."),
    ),
    "alert-refused": ProblemType(
        "422", _("The alert rule, route or silence is not valid; errors names the fields.")
    ),
    "another-node": ProblemType("403", _("The agent's token belongs to another node.")),
    "another-under-way": ProblemType(
        "409", _("A rearrangement is under way already; wait for it or cancel it.")
    ),
    "authentication-failed": ProblemType(
        "401", _("The token or password is wrong, has expired or was revoked.")
    ),
    "bad-request": ProblemType("400", _("The request cannot be read as HTTP should be.")),
    "blob-missing": ProblemType("410", _("The file was deleted; it cannot be read any more.")),
    "cluster-marked": ProblemType(
        "409", _("Ninefold still marks nodes of the cluster as out of use; give them back first.")
    ),
    "cluster-occupied": ProblemType(
        "409", _("Work runs on the cluster or holds its cards; stop it first.")
    ),
    "cluster-refused": ProblemType(
        "422", _("The cluster's fields are not valid; errors names them.")
    ),
    "cluster-unfit": ProblemType(
        "422", _("The cluster lacks something that Ninefold needs; errors says what.")
    ),
    "dataset-refused": ProblemType(
        "422", _("Rows of the file are not valid; errors names row and column.")
    ),
    "deletion-refused": ProblemType(
        "409", _("Something still uses what is to be deleted; the detail names it.")
    ),
    "duplicate-upload": ProblemType(
        "409", _("The same rows are a version of the dataset already.")
    ),
    "forbidden": ProblemType("403", _("Your role does not allow this.")),
    "health-policy-refused": ProblemType(
        "422", _("The health policy is not valid; errors names the fields.")
    ),
    "health-rule-refused": ProblemType(
        "422", _("The health rule is not valid; errors names the fields.")
    ),
    "hub-refused": ProblemType("422", _("The model hub does not offer what was asked for.")),
    "hub-unreachable": ProblemType("502", _("The model hub does not answer; try again later.")),
    "idempotency-busy": ProblemType(
        "409",
        _(
            "The first request with this Idempotency-Key is still running; repeat after Retry-After."
        ),
    ),
    "idempotency-mismatch": ProblemType(
        "422", _("The Idempotency-Key was used with another body; choose a new one.")
    ),
    "illegal-transition": ProblemType(
        "409", _("The object is in a state in which this cannot be done.")
    ),
    "internal": ProblemType("500", _("A fault of the server; its log has it under request_id.")),
    "invalid": ProblemType(
        "400", _("Fields or parameters are wrong; errors names each with its message.")
    ),
    "isolation-refused": ProblemType(
        "422", _("The card or node cannot be isolated or given back like that.")
    ),
    "membership-refused": ProblemType(
        "409",
        _("The membership cannot be changed like that, such as the last administrator leaving."),
    ),
    "method-not-allowed": ProblemType("405", _("The address does not take this method.")),
    "model-refused": ProblemType(
        "422", _("The files are no model that can be used; the detail says why.")
    ),
    "not-acceptable": ProblemType("406", _("The address answers in none of the accepted forms.")),
    "not-authenticated": ProblemType("401", _("Send a token: Authorization: Bearer …")),
    "not-found": ProblemType(
        "404", _("There is nothing at this address for you; it may be another team's.")
    ),
    "nothing-to-move": ProblemType("422", _("No rearrangement makes the room that was asked for.")),
    "parse-error": ProblemType("400", _("The body is not valid JSON.")),
    "permission-denied": ProblemType("403", _("Your role does not allow this.")),
    "permission-refused": ProblemType(
        "403", _("Your role or the token's scope does not allow this.")
    ),
    "push-busy": ProblemType(
        "503", _("Too many figures are waiting; send them again after Retry-After.")
    ),
    "push-outdated": ProblemType("400", _("The figures are older than those that are known.")),
    "push-refused": ProblemType(
        "400", _("The pushed text cannot be read; errors names the lines.")
    ),
    "queue-file-refused": ProblemType(
        "422", _("The queue file is not valid; errors names queue and field.")
    ),
    "queues-changed": ProblemType(
        "409, 412", _("Somebody changed the queues meanwhile; read them again and repeat.")
    ),
    "queues-refused": ProblemType(
        "422", _("The queue tree would not be valid; errors names queue and field.")
    ),
    "rearrangement-stale": ProblemType(
        "409", _("The fleet has changed since the plan was made; ask for a new one.")
    ),
    "refused": ProblemType("422", _("The request cannot be carried out; the detail says why.")),
    "registration-refused": ProblemType(
        "422", _("The model cannot be registered like that; the detail says why.")
    ),
    "report-refused": ProblemType(
        "422", _("The report of an attempt is not valid; errors names the fields.")
    ),
    "rollout-refused": ProblemType(
        "422", _("The rollout over nodes is not valid; errors names the fields.")
    ),
    "rule-invalid": ProblemType("422", _("The rule is not valid; errors names the fields.")),
    "sizing-refused": ProblemType(
        "422", _("Memory cannot be worked out for this question; errors names the fields.")
    ),
    "source-refused": ProblemType(
        "422", _("The telemetry source is not valid; errors names the fields.")
    ),
    "spec-refused": ProblemType(
        "422", _("The spec cannot be run; errors names each field with what would be right.")
    ),
    "storage-full": ProblemType("507", _("The server's disk is full.")),
    "storage-quota-exceeded": ProblemType(
        "409", _("The team's storage quota would be exceeded; delete something or ask for more.")
    ),
    "throttled": ProblemType("429", _("Too many requests; repeat after Retry-After.")),
    "too-large": ProblemType("413", _("The body is larger than the address takes.")),
    "unsupported-media-type": ProblemType("415", _("Send the body as application/json.")),
    "webhook-refused": ProblemType("422", _("The webhook is not valid; errors names the fields.")),
}


@login_required
def problem_types(request: HttpRequest) -> HttpResponseBase:
    return render(request, "problem_types.html", {"types": PROBLEM_TYPES})
