"""Many queues at once: for one chip what each states, or the state and the weight of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.fleet.models import Card
from apps.quotas.admin.forms import STATES, CardsForm
from apps.quotas.admin.reviews import Proposal, answer, saving_form
from apps.quotas.selectors import trees
from apps.quotas.services.trees import TreeAct, TreeEdit
from controlplane.domain.queue_documents import Documents, QueueDocument, path_of
from controlplane.domain.queue_rights import is_topmost, may_change
from controlplane.domain.queues import QueueState
from controlplane.domain.quotas import TOTAL, Entitlement
from controlplane.web.forms import PlainForm

#: Asks for state and weight where a chip could stand.
_PLAIN = "fields"


class PlainRow(PlainForm):
    """State and weight of one queue."""

    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=[(state, str(label).partition(":")[0]) for state, label in STATES],
    )
    weight = forms.FloatField(label=pgettext_lazy("queue", "Weight"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A queue of the grid."""

    document: QueueDocument
    path: str
    chosen: bool
    #: None while the queue is not chosen.
    form: CardsForm | PlainRow | None = None


def queues_edited(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """``?uid=`` names the queues, as often as there are any; ``?of=`` the chip, or state and weight."""
    documents, rights = trees.tree_documents(), trees.tree_rights(request.user)
    dimension = request.GET.get("of", _PLAIN)
    chosen = set(request.GET.getlist("uid"))
    theirs = {
        uid: document for uid, document in documents.items() if may_change(uid, documents, rights)
    }
    lines = [
        Line(
            document=document,
            path=path_of(uid, documents),
            chosen=uid in chosen,
            form=_row(
                request,
                document,
                dimension,
                given=not rights.everything and is_topmost(uid, documents, rights),
            )
            if uid in chosen
            else None,
        )
        for uid, document in sorted(theirs.items(), key=lambda item: path_of(item[0], documents))
    ]
    edited = [line for line in lines if line.form is not None]
    shown = {
        **context,
        "lines": lines,
        "edited": edited,
        "dimension": dimension,
        "dimensions": _dimensions(documents),
    }
    proposal = Proposal(
        edit=_edit(edited, dimension),
        saving=saving_form(request.POST or None),
        forms=[line.form for line in edited if line.form is not None],
        word="stop",
        done=_("The queues are saved."),
        back=reverse("admin:quotas_queue_changelist"),
    )
    return answer(request, proposal, template="admin/quotas/bulk.html", context=shown)


def _dimensions(documents: Documents) -> list[tuple[str, str]]:
    fleet = Card.objects.order_by("chip").values_list("chip", flat=True).distinct()
    stated = {chip for document in documents.values() for chip in document.entitlements if chip}
    chips = dict.fromkeys((*fleet, *sorted(stated)))
    return [
        (_PLAIN, _("State and weight")),
        *((f"chip:{chip}", chip) for chip in chips),
        (f"chip:{TOTAL}", _("All chips together")),
    ]


def _row(
    request: HttpRequest, document: QueueDocument, dimension: str, *, given: bool
) -> CardsForm | PlainRow:
    data = request.POST or None
    if dimension == _PLAIN:
        initial = {"state": document.state.value, "weight": document.weight}
        row = PlainRow(data, prefix=document.uid, initial=initial)
        row.fields["weight"].disabled = given
        return row
    chip = dimension.partition(":")[2]
    stated = CardsForm.initial_of(chip, document.entitlement(chip))
    return CardsForm(data, prefix=document.uid, initial=stated, fixed=given)


def _edit(lines: list[Line], dimension: str) -> TreeEdit | None:
    rows = [(line.document, line.form) for line in lines if line.form is not None]
    # Every row, so that each shows what is wrong with it.
    valid = [form.is_valid() for _document, form in rows]
    if not rows or not all(valid):
        return None
    queues = {document.uid: _edited(document, form, dimension) for document, form in rows}
    return TreeEdit(queues=queues, act=TreeAct.BULK)


def _edited(document: QueueDocument, form: CardsForm | PlainRow, dimension: str) -> QueueDocument:
    if isinstance(form, PlainRow):
        told = form.cleaned_data
        return replace(document, state=QueueState(told["state"]), weight=told["weight"])
    stated = {**document.entitlements, dimension.partition(":")[2]: form.entitlement}
    kept = {chip: one for chip, one in stated.items() if one != Entitlement()}
    return replace(document, entitlements=kept)
