"""Every change of the tree is looked at before it is saved, in the same way: what would differ, who would gain,
who would be asked to stop. Then the person says why, and confirms where work would be stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused
from apps.quotas.admin.forms import SavingForm
from apps.quotas.models import QueueChange
from apps.quotas.selectors import trees as selectors
from apps.quotas.services import trees
from controlplane.domain.fields import Finding
from controlplane.domain.queue_documents import (
    POLICIES,
    DifferenceKind,
    Documents,
    QueueDifference,
    changes,
    from_json,
)
from controlplane.domain.queue_edits import TreeEdit
from controlplane.domain.queue_previews import Gain, Reclaim, TreePreview
from controlplane.web.sentences import said
from controlplane.web.states import look_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that would not be as it was, as it is shown."""

    message: str
    before: str = ""
    after: str = ""
    #: The values say more than the sentence.
    shows_values: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """Something that was filled in and is not right."""

    #: Id of the field, to lead there.
    field: str
    label: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a change would do, in words; of nothing, before anything was looked at."""

    preview: TreePreview | None = None
    #: What was filled in is not complete; nothing could be looked at.
    incomplete: bool = False
    mistakes: tuple[Mistake, ...] = ()
    #: Why the person may not do it; empty if they may.
    forbidden: str = ""
    #: What has to be typed before work is stopped; empty: nothing.
    must_type: str = ""
    #: Saved under this name; empty: what it does is told.
    verb: str = ""

    @property
    def refusals(self) -> list[str]:
        forbidden = self.forbidden.split("; ") if self.forbidden else []
        return forbidden + (_sentences(self.preview.findings) if self.preview else [])

    @property
    def warnings(self) -> list[str]:
        return _sentences(self.preview.warnings) if self.preview else []

    @property
    def differences(self) -> list[Difference]:
        return differences_shown(self.preview.differences) if self.preview else []

    @property
    def gains(self) -> tuple[Gain, ...]:
        return self.preview.gains if self.preview else ()

    @property
    def reclaims(self) -> tuple[Reclaim, ...]:
        return self.preview.reclaims if self.preview else ()

    @property
    def blocked(self) -> bool:
        """Saving it would be refused, or change nothing."""
        return (
            self.incomplete
            or bool(self.forbidden)
            or bool(self.preview and (self.preview.findings or not self.preview.differences))
        )

    @property
    def summary(self) -> str:
        """All of it in one sentence."""
        if self.incomplete:
            return _("Something that was filled in is not right yet.")
        if self.forbidden:
            return _("You may not change this.")
        if self.preview is None:
            return _("Change something, and what it would do is told here before it is saved.")
        if self.preview.findings:
            return _("This cannot be saved as it is.")
        if not self.preview.differences:
            return _("Nothing would be different.")
        count = len(self.preview.differences)
        told = ngettext("%(count)d change", "%(count)d changes", count) % {"count": count}
        return _("%(told)s. %(consequence)s") % {
            "told": told,
            "consequence": self._consequence() or _("No claim starts or stops by it."),
        }

    @property
    def label(self) -> str:
        """What the button says: what saving will do."""
        verb = self.verb or _("Save")
        consequence = "" if self.blocked else self._consequence()
        return (
            _("%(verb)s: %(what)s") % {"verb": verb, "what": consequence} if consequence else verb
        )

    def _consequence(self) -> str:
        if self.reclaims:
            return _asked_to_stop(self.reclaims)
        starting = len({claim for gain in self.gains for claim in gain.starting})
        if not starting:
            return ""
        return ngettext(
            "%(count)d claim that waits starts", "%(count)d claims that wait start", starting
        ) % {"count": starting}


def _asked_to_stop(reclaims: tuple[Reclaim, ...]) -> str:
    teams = sorted({reclaim.team for reclaim in reclaims if reclaim.team})
    count = len(reclaims)
    if len(teams) == 1:
        return ngettext(
            "%(count)d claim of %(team)s will be asked to stop",
            "%(count)d claims of %(team)s will be asked to stop",
            count,
        ) % {"count": count, "team": teams[0]}
    return ngettext(
        "%(count)d claim will be asked to stop", "%(count)d claims will be asked to stop", count
    ) % {"count": count}


def _sentences(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.message for finding in findings]


def differences_of(change: QueueChange, documents: Documents) -> tuple[QueueDifference, ...]:
    """What a saved change made different.

    :param documents: the tree as it is now, for the names of queues that the change did not touch.
    """
    before, after = dict(documents), dict(documents)
    for tree, kept in ((before, change.before), (after, change.after)):
        for uid, document in kept.items():
            tree.pop(uid, None)
            if document:
                tree[uid] = from_json(document)
    return changes(before, after)


def differences_shown(differences: tuple[QueueDifference, ...]) -> list[Difference]:
    return list(_shown(differences))


def _shown(differences: tuple[QueueDifference, ...]) -> Iterator[Difference]:
    for one in differences:
        before, after = (_value(one.field, value) for value in (one.before, one.after))
        yield Difference(
            message=one.message,
            before=before,
            after=after,
            shows_values=one.kind is DifferenceKind.CHANGED and one.field != "description",
        )


def _value(name: str, value: str) -> str:
    if name in POLICIES:
        return _("yes") if value == "yes" else _("no")
    return str(look_of(value).word) if name == "state" and value else value


# -- One way for all pages --


@dataclass(slots=True, kw_only=True)
class Proposal:
    """What a person would change, on its way to being saved."""

    #: None while what was filled in is not valid.
    edit: TreeEdit | None
    saving: SavingForm
    #: What it was filled in with.
    forms: Sequence[BaseForm]
    #: What has to be typed where work would be stopped.
    word: str
    #: Told when it is saved.
    done: str
    #: Where they go then.
    back: str
    #: The button, where "Save" would not do.
    verb: str = ""
    #: Look at it although nothing was sent yet.
    at_once: bool = False
    #: Takes a change back instead of making a new one.
    reverts: QueueChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanwhile:
    """A change that somebody else saved."""

    change: QueueChange
    differences: list[Difference] = field(default_factory=list)

    @property
    def more(self) -> int:
        """Differences beyond the three that a list shows."""
        return len(self.differences) - 3


def saving_form(data: Any = None) -> SavingForm:
    """The last step of a page; one that was not sent yet knows the tree as it is now."""
    newest = QueueChange.objects.values_list("uid", flat=True).first()
    initial = {"seen": selectors.tree_fingerprint(), "since": newest or ""}
    return SavingForm(data, initial=initial)


def answer(
    request: HttpRequest, proposal: Proposal, *, template: str, context: Mapping[str, Any]
) -> HttpResponse:
    """Save it, or show what it would do: the page, or for htmx the part of it that tells."""
    user = _person(request)
    looked = request.method == "POST" or proposal.at_once
    review = _review(proposal, user) if looked else Review(verb=proposal.verb)
    # None: nobody has changed the tree since they began.
    meanwhile: list[Meanwhile] | None = None
    edit = proposal.edit
    if "save" in request.POST and edit is not None and proposal.saving.is_valid():
        try:
            if _confirmed(proposal, review):
                _save(proposal, edit, user)
                messages.success(request, proposal.done)
                return redirect(proposal.back)
        except trees.TreeMoved:
            meanwhile = _meanwhile(proposal, user)
            proposal.saving = _from_now_on(proposal.saving)
        except (trees.TreeRefused, PermissionRefused) as refusal:
            proposal.saving.add_error(None, said(str(refusal)))
    shown = {**context, "review": review, "saving": proposal.saving, "meanwhile": meanwhile}
    if request.headers.get("HX-Request"):
        return render(request, "admin/quotas/looked_at.html", {**shown, "swapped": True})
    return render(request, template, shown)


def _review(proposal: Proposal, user: User) -> Review:
    if proposal.edit is None:
        mistakes = tuple(mistake for form in proposal.forms for mistake in _mistakes(form))
        return Review(incomplete=True, mistakes=mistakes, verb=proposal.verb)
    try:
        preview = trees.tree_preview(proposal.edit, at=timezone.now(), by_person=user)
    except PermissionRefused as refusal:
        return Review(forbidden=str(refusal), verb=proposal.verb)
    must_type = proposal.word if preview.reclaims else ""
    return Review(preview=preview, must_type=must_type, verb=proposal.verb)


def _mistakes(form: BaseForm) -> Iterator[Mistake]:
    for bound in form:
        for error in bound.errors:
            yield Mistake(field=bound.id_for_label, label=str(bound.label), message=str(error))


def _confirmed(proposal: Proposal, review: Review) -> bool:
    typed = proposal.saving.cleaned_data["confirm"].strip()
    if not review.must_type or typed == review.must_type:
        return True
    message = _("Work would be stopped by this. Type %(word)s to confirm it.")
    proposal.saving.add_error("confirm", message % {"word": review.must_type})
    return False


def _save(proposal: Proposal, edit: TreeEdit, user: User) -> None:
    told = proposal.saving.cleaned_data
    at = timezone.now()
    if proposal.reverts is not None:
        trees.change_revert(proposal.reverts, actor=user, at=at, note=told["note"])
    else:
        told_edit = replace(edit, note=told["note"], seen=told["seen"])
        trees.tree_apply(told_edit, actor=user, at=at)


def _meanwhile(proposal: Proposal, user: User) -> list[Meanwhile]:
    """What others saved since the person began."""
    since = QueueChange.objects.filter(uid=proposal.saving.cleaned_data["since"]).first()
    rows, documents = selectors.changes_visible(user), selectors.tree_documents()
    if since is not None:
        rows = rows.filter(pk__gt=since.pk)
    return [
        Meanwhile(change=change, differences=differences_shown(differences_of(change, documents)))
        for change in rows[:10]
    ]


def _from_now_on(saving: SavingForm) -> SavingForm:
    """What was typed, for the tree as it is now."""
    typed = {name: saving.data.get(name, "") for name in saving.fields}
    return SavingForm({**typed, **saving_form().initial, "confirm": ""})


def _person(request: HttpRequest) -> User:
    """:raises PermissionRefused: if nobody is logged in, which the admin has seen to before."""
    if isinstance(request.user, User):
        return request.user
    raise PermissionRefused("log in to change queues")
