"""Helpers for the queue console: open a page, change fields, submit it."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from apps.accounts.models import Team, User
from apps.quotas.models import Claim, Queue
from controlplane.domain.quotas.queues import TOTAL
from tests.factories import usage
from tests.functional.admin.pages import page
from tests.integration.company import Company, entitle


def at(name: str, *args: object, **query: str | list[str]) -> str:
    """URL of a page of the console."""
    return reverse(f"admin:quotas_queue_{name}", args=args, query=query or None)


def edit_page(queue: Queue) -> str:
    return page(Queue, "change", queue.pk)


def filled(browser: Client, address: str, **changes: object) -> dict[str, Any]:
    """Form data of the page with those changes; None removes a field."""
    context = browser.get(address).context
    forms = [context["saving"]]
    if context.get("form") is not None:
        forms.append(context["form"])
    cards = context.get("cards")
    forms += [line.form for line in context.get("edited") or []]
    forms += list(cards.rows) if cards else []
    values = {
        bound.html_name: bound.value()
        for form in forms
        for bound in form
        if bound.value() not in (None, False)
    }
    if cards:
        values["chips"] = [chip for chip in cards.chips if chip != TOTAL]
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def preview(browser: Client, address: str, **changes: object) -> Any:
    """The live preview of a page with those changes."""
    sent = filled(browser, address, **changes)
    response = browser.post(address, sent, headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response


def save(browser: Client, address: str, **changes: object) -> Any:
    """Submit a page with those changes."""
    return browser.post(address, filled(browser, address, **changes, save="1"))


def queue(
    company: Company,
    name: str,
    *,
    team: Team | None = None,
    parent: Queue | None = None,
    **cpu: Any,
) -> Queue:
    """A queue with that quota of the chip ``cpu``."""
    created = Queue.objects.create(name=name, team=team, parent=parent)
    if cpu:
        entitle(created, **cpu)
    return created


def borrowing(company: Company, lender: Queue, borrower: Queue, *, user: User) -> Claim:
    """All cards are allocated to a preemptible claim of the borrower; a claim of the lender is pending."""
    running = usage.waiting(
        queue=borrower, team=company.other_team, user=user, cards=2, name="secret sweep"
    )
    Claim.objects.filter(pk=running.pk).update(preemptible=True)
    usage.admit(running, at=company.at)
    usage.waiting(queue=lender, team=company.team, cards=2, name="tune the parser")
    running.refresh_from_db()
    return running
