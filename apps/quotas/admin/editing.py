"""One queue: what it is called, how it deals with others, which cards are its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.models import Team
from apps.fleet.models import Card
from apps.fleet.selectors import chips_known
from apps.quotas.admin.forms import CardsTable, QueueForm
from apps.quotas.admin.reviews import Proposal, answer, saving_form
from apps.quotas.models import Queue
from apps.quotas.selectors import trees
from controlplane.domain.queue_documents import Documents, QueueDocument, lineage, path_of
from controlplane.domain.queue_edits import TreeAct, TreeEdit
from controlplane.domain.queue_rights import TreeRights, is_topmost, may_add_below
from controlplane.ports import registry

#: What queue admins of a team cannot change of the queue that it was given.
_GIVEN = ("name", "parent", "team", "weight")
#: Switches that they may turn this way only: nobody else loses by it.
_ONE_WAY = {"lends": True, "borrows": False, "reclaims": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """The tree that a queue is written for, and who writes."""

    documents: Documents
    rights: TreeRights
    #: As it is saved; None for one that is to be made.
    saved: QueueDocument | None

    @property
    def given(self) -> bool:
        """It was given to a team by somebody else, and they administer only that team's queues."""
        if self.saved is None or self.rights.everything:
            return False
        return is_topmost(self.saved.uid, self.documents, self.rights)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Fields of the form that they cannot change."""
        if not self.given or self.saved is None:
            return ()
        turned = (name for name, way in _ONE_WAY.items() if getattr(self.saved, name) is way)
        return (*_GIVEN, *turned)

    def parents(self) -> Iterator[tuple[str, str]]:
        """Queues below which it may stand: never itself or one below it."""
        if self.rights.everything or self.given:
            yield "", _("at the top")
        for uid, document in sorted(
            self.documents.items(), key=lambda item: path_of(item[0], self.documents)
        ):
            above = lineage(uid, self.documents)
            if self.saved is not None and self.saved.uid in above:
                continue
            standing = self.saved is not None and uid == self.saved.parent
            if standing or may_add_below(uid, self.documents, self.rights):
                yield document.uid, path_of(uid, self.documents)

    def teams(self) -> Iterator[tuple[str, str]]:
        if self.rights.everything or (self.saved is not None and not self.saved.team):
            yield "", _("every team")
        rows = Team.objects.order_by("name").values_list("slug", "name")
        for slug, name in rows:
            if self.rights.everything or slug in self.rights.teams:
                yield slug, name


def queue_added(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """A new queue, below the one that ``?below=`` names."""
    return _written(request, context, None, below=request.GET.get("below", ""))


def queue_edited(request: HttpRequest, context: dict[str, Any], queue: Queue) -> HttpResponse:
    return _written(request, context, queue)


def _written(
    request: HttpRequest, context: dict[str, Any], queue: Queue | None, *, below: str = ""
) -> HttpResponse:
    documents = trees.tree_documents()
    saved = documents[queue.uid] if queue else None
    draft = Drafting(documents=documents, rights=trees.tree_rights(request.user), saved=saved)
    data = request.POST or None
    form = QueueForm(
        data,
        initial=QueueForm.initial_of(saved) if saved else _beginning(documents, below),
        parents=tuple(draft.parents()),
        teams=tuple(draft.teams()),
        fixed=draft.fixed,
    )
    stated = saved.entitlements if saved else {}
    cards = CardsTable(stated, _chips(request, documents), data=data, fixed=draft.given)
    proposal = Proposal(
        edit=_edit(form, cards, saved),
        saving=saving_form(data),
        forms=(form, *cards.rows),
        word=saved.name if saved else form.data.get("name", ""),
        done=_("%(queue)s is saved.") % {"queue": form["name"].value()},
        back=reverse("admin:quotas_queue_changelist"),
    )
    shown = {
        **context,
        "form": form,
        "cards": cards,
        "draft": draft,
        "queue": queue,
        "more_chips": [
            known.chip.name
            for known in chips_known()
            if not known.chip.slice_of and known.chip.name not in cards.chips
        ],
        "added_chip": request.POST.get("another") if "add_chip" in request.POST else None,
    }
    return answer(request, proposal, template="admin/quotas/edit.html", context=shown)


def _beginning(documents: Documents, below: str) -> dict[str, Any]:
    """A new queue belongs to the team of the queue above it."""
    above = documents.get(below)
    if above is None:
        return {}
    return {"parent": above.uid, "team": above.team}


def _chips(request: HttpRequest, documents: Documents) -> Sequence[str]:
    """Rows of the table: chips of the fleet first, then what other queues state, then what they added."""
    fleet = Card.objects.order_by("chip").values_list("chip", flat=True).distinct()
    stated = {chip for document in documents.values() for chip in document.entitlements if chip}
    known = registry.chips()
    asked = [*request.POST.getlist("chips"), request.POST.get("another", "")]
    return [*fleet, *sorted(stated), *(chip for chip in asked if chip in known)]


def _edit(form: QueueForm, cards: CardsTable, saved: QueueDocument | None) -> TreeEdit | None:
    # Both, so that each shows what is wrong with it.
    valid = form.is_valid(), cards.is_valid()
    if not all(valid):
        return None
    document = form.document(uid=saved.uid if saved else "", entitlements=cards.entitlements)
    return TreeEdit(queues={document.uid: document}, act=_act(document, saved))


def _act(document: QueueDocument, saved: QueueDocument | None) -> TreeAct:
    if saved is None:
        return TreeAct.CREATE
    return TreeAct.EDIT if document.parent == saved.parent else TreeAct.MOVE
