"""One thing done with one queue: it moves, takes work or does not, or goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from apps.quotas.admin.editing import Drafting
from apps.quotas.admin.forms import STATES
from apps.quotas.admin.reviews import Proposal, answer, saving_form
from apps.quotas.models import Queue
from apps.quotas.selectors import trees
from apps.quotas.services.trees import TreeAct, TreeEdit
from apps.quotas.services.trees import queue_retired as retiring
from controlplane.domain.queues import QueueState
from controlplane.web.forms import PlainForm


class MovingForm(PlainForm):
    parent = forms.ChoiceField(
        label=gettext_lazy("Below"),
        required=False,
        help_text=gettext_lazy("What stands below it moves with it."),
    )


class StatingForm(PlainForm):
    to = forms.ChoiceField(label=gettext_lazy("State"), choices=STATES)


def queue_moved(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    documents = trees.tree_documents()
    document = documents[queue.uid]
    draft = Drafting(documents=documents, rights=trees.tree_rights(request.user), saved=document)
    form = MovingForm(request.POST or None, initial={"parent": document.parent})
    form.choice("parent").choices = tuple(draft.parents())
    edit = None
    if form.is_bound and form.is_valid():
        moved = replace(document, parent=form.cleaned_data["parent"])
        edit = TreeEdit(queues={queue.uid: moved}, act=TreeAct.MOVE)
    return _shown(request, context, queue, edit=edit, form=form, verb=_("Move it"))


def queue_stated(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    """``?to=`` names the state."""
    form = StatingForm(request.POST or {"to": request.GET.get("to", queue.state)})
    edit = None
    if form.is_valid():
        document = trees.queue_document(queue)
        told = replace(document, state=QueueState(form.cleaned_data["to"]))
        edit = TreeEdit(queues={queue.uid: told}, act=TreeAct.EDIT)
    return _shown(
        request, context, queue, edit=edit, form=form, verb=_("Change the state"), at_once=True
    )


def queue_retired(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    edit = retiring(trees.queue_document(queue))
    return _shown(
        request,
        context,
        queue,
        edit=edit,
        form=None,
        verb=pgettext("queue", "Retire"),
        at_once=True,
    )


def _shown(
    request: HttpRequest,
    context: dict[str, Any],
    queue: Queue,
    *,
    edit: TreeEdit | None,
    form: PlainForm | None,
    verb: str,
    at_once: bool = False,
) -> HttpResponse:
    proposal = Proposal(
        edit=edit,
        saving=saving_form(request.POST or None),
        forms=() if form is None else (form,),
        word=queue.name,
        done=_("%(queue)s is saved.") % {"queue": queue.name}
        if form is not None
        else _("%(queue)s is retired; its history stays.") % {"queue": queue.name},
        back=reverse("admin:quotas_queue_changelist"),
        verb=verb,
        at_once=at_once,
    )
    shown = {**context, "form": form, "queue": queue, "heading": verb}
    return answer(request, proposal, template="admin/quotas/act.html", context=shown)
