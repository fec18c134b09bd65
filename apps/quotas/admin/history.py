"""What was changed in the tree, by whom and why; and how it is taken back."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.quotas.admin.reviews import (
    Meanwhile,
    Proposal,
    answer,
    differences_of,
    differences_shown,
    saving_form,
)
from apps.quotas.models import Queue
from apps.quotas.selectors import trees
from apps.quotas.services.trees import TreeMoved, change_edit

_PAGE = 25


def changes_listed(
    request: HttpRequest, context: dict[str, Any], *, queue: Queue | None = None
) -> HttpResponse:
    """The newest first; of one queue, or of all that the person manages."""
    rows = trees.changes_visible(request.user)
    if queue is not None:
        rows = rows.filter(Q(before__has_key=queue.uid) | Q(after__has_key=queue.uid))
    page = Paginator(rows, _PAGE).get_page(request.GET.get("page"))
    documents = trees.tree_documents()
    changes = [
        Meanwhile(change=change, differences=differences_shown(differences_of(change, documents)))
        for change in page
    ]
    shown = {**context, "changes": changes, "page": page, "queue": queue}
    return render(request, "admin/quotas/history.html", shown)


def change_shown(request: HttpRequest, context: dict[str, Any], *, uid: str) -> HttpResponse:
    """One change field by field, and what taking it back would do now."""
    change = trees.changes_visible(request.user).filter(uid=uid).first()
    if change is None:
        raise Http404
    documents = trees.tree_documents()
    shown = {
        **context,
        "change": change,
        "differences": differences_shown(differences_of(change, documents)),
        "reverted_by": change.reverted_by.first(),
    }
    try:
        edit = change_edit(change)
    except TreeMoved as moved:
        left = differences_shown(moved.differences)
        return render(request, "admin/quotas/past.html", {**shown, "changed_since": left})
    proposal = Proposal(
        edit=edit,
        saving=saving_form(request.POST or None),
        forms=(),
        word="stop",
        done=_("The change is taken back."),
        back=reverse("admin:quotas_queue_changes"),
        verb=_("Take it back"),
        at_once=True,
        reverts=change,
    )
    return answer(request, proposal, template="admin/quotas/past.html", context=shown)
