"""Changes of the queue tree: saved as one edit, with history and audit, and reverted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry, User
from apps.accounts.selectors import PermissionRefused
from apps.quotas import services
from apps.quotas.models import Claim, Queue, QueueChange
from apps.quotas.models import Entitlement as EntitlementRow
from apps.quotas.selectors import queues_for_team
from apps.quotas.selectors.queue_trees import (
    current_tree_fingerprint,
    queue_changes_visible,
    queue_tree_documents,
)
from apps.quotas.services import QueueTreeConflict, QueueTreeRefused, TreeEdit
from apps.quotas.services.queue_tree_files import queue_tree_export, tree_edit_from_yaml
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.domain.quotas.queue_documents import QueueDocument
from controlplane.domain.quotas.queue_files import InvalidQueueFile
from controlplane.domain.quotas.queues import TOTAL, ChipQuota
from controlplane.outbox.models import OutboxMessage
from tests.cases import for_each_case
from tests.integration.company import Company, entitle

FILE = """
queues:
  lab:
    team: addresses
    weight: 2
    cards:
      cpu: {reserved: 1, guaranteed: 2}
      total: {cap: 8}
    below:
      vision: {cards: {cpu: {guaranteed: 1}}}
      speech: {description: "tones: 声调", lends: false}
"""


@pytest.fixture
def chief(company: Company) -> User:
    return User.objects.create(username="chief", is_superuser=True)


def apply(edit: TreeEdit, *, actor: User, company: Company) -> QueueChange:
    return services.queue_tree_apply(edit, actor=actor, at=company.at)


def edit(action: str = "edit", **queues: QueueDocument | None) -> TreeEdit:
    return TreeEdit(queues=queues, action=action)


def new(name: str, **fields: Any) -> TreeEdit:
    return TreeEdit(
        queues={f"new:{name}": QueueDocument(uid="", name=name, **fields)}, action="create"
    )


def document(name: str) -> QueueDocument:
    return next(one for one in queue_tree_documents().values() if one.name == name)


def changed(name: str, action: str = "edit", **fields: Any) -> TreeEdit:
    found = document(name)
    return TreeEdit(queues={found.uid: replace(found, **fields)}, action=action)


def refusal(edit: TreeEdit, *, actor: User, company: Company) -> str:
    before = current_tree_fingerprint()
    with pytest.raises(QueueTreeRefused) as refused:
        apply(edit, actor=actor, company=company)
    assert current_tree_fingerprint() == before
    return str(refused.value)


def test_an_import_writes_rows_history_audit_and_a_message(company: Company, chief: User) -> None:
    change = apply(tree_edit_from_yaml(FILE, note="first draft"), actor=chief, company=company)

    vision = Queue.objects.get(name="vision")
    assert vision.parent == Queue.objects.get(name="lab")
    assert vision.team == company.team
    assert set(EntitlementRow.objects.values_list("queue__name", "chip", "guaranteed", "cap")) == {
        ("lab", "cpu", 2, None),
        ("lab", "", 0, 8),
        ("vision", "cpu", 1, None),
    }
    assert (change.action, change.actor_name, change.note) == ("import", "chief", "first draft")
    assert set(change.before.values()) == {None}
    assert set(change.after) == set(
        Queue.objects.exclude(name="default").values_list("uid", flat=True)
    )
    audited = AuditEntry.objects.filter(action="queue.import")
    assert {(entry.object_name, entry.team) for entry in audited} == {
        (name, company.team) for name in ("lab", "vision", "speech")
    }
    assert audited[0].detail["before"] is None
    assert audited[0].detail["after"]["team"] == "addresses"
    (message,) = OutboxMessage.objects.filter(topic="queues.changed")
    assert message.payload == {"change_uid": change.uid}


def test_what_is_exported_is_imported_without_a_change(company: Company, chief: User) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)

    text = queue_tree_export()
    assert "nvidia" not in text
    assert "cpu: {reserved: 1, guaranteed: 2}" in text
    assert "声调" in text
    assert refusal(tree_edit_from_yaml(text, prune=True), actor=chief, company=company).startswith(
        "nothing to save"
    )
    part = queue_tree_export(of=Queue.objects.get(name="speech"))
    assert part.startswith("below: lab\n")
    assert "vision" not in part


def test_a_pruned_import_retires_what_the_file_does_not_name(company: Company, chief: User) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    text = FILE.replace('      speech: {description: "tones: 声调", lends: false}\n', "")

    apply(tree_edit_from_yaml(text, prune=True), actor=chief, company=company)

    assert {one.name for one in queue_tree_documents().values()} == {"lab", "vision"}
    assert set(Queue.objects.exclude(retired_at=None).values_list("name", flat=True)) == {
        "default",
        "speech",
    }


@for_each_case(
    ("text", "message"),
    [
        (
            "queues: {a: &x {}, b: *x}",
            "line 1 has a YAML anchor or alias; write the value out instead",
        ),
        ("queues:\n  a: {}\n  a: {}\n", "line 3: duplicate key a; write it once"),
        ("queues: [\n", "line 2 is not valid YAML: did not find expected node content"),
        (
            "queues: !!python/name:os.system {}",
            "line 1 is not valid YAML: could not determine a constructor",
        ),
        ("[" * 100_000, "line 1 is nested more than 40 levels deep; use at most 40 levels"),
        ("queues: {a: {weight: 2024-99-99}}", "the file is not valid YAML: month must be in 1..12"),
        ("a" * 600_000, "the file has 600000 bytes; the limit is 524288 bytes"),
        ("", "a file must have queues: with a queue under each name, got None"),
        ("queues: {a: {weight: " + "9" * 5000 + "}}", "the file is not valid YAML"),
        ("queues: {a: \0}", "the file is not valid YAML"),
    ],
)
def test_an_untrusted_file_is_refused_with_a_message(db: None, text: str, message: str) -> None:
    with pytest.raises(InvalidQueueFile) as refused:
        tree_edit_from_yaml(text)
    (finding,) = refused.value.findings
    assert finding.message.startswith(message)


def test_two_queues_swap_names_and_parents(company: Company, chief: User) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    lab, vision = document("lab"), document("vision")
    speech = document("speech")

    swapped = {
        lab.uid: replace(lab, name="vision", parent=vision.uid, entitlements={}),
        vision.uid: replace(vision, name="lab", parent="", entitlements=lab.entitlements),
        speech.uid: replace(speech, parent=vision.uid),
    }
    apply(TreeEdit(queues=swapped, action="move"), actor=chief, company=company)

    assert Queue.objects.get(uid=vision.uid).name == "lab"
    assert Queue.objects.get(uid=lab.uid).parent == Queue.objects.get(uid=vision.uid)
    assert document("lab").entitlements[TOTAL] == ChipQuota(cap=8)


def test_a_new_queue_can_have_a_new_parent(company: Company, chief: User) -> None:
    both = {
        "new:top": QueueDocument(uid="", name="top"),
        "new:leaf": QueueDocument(uid="", name="leaf", parent="new:top"),
    }
    change = apply(TreeEdit(queues=both, action="create"), actor=chief, company=company)

    leaf = Queue.objects.get(name="leaf")
    assert leaf.parent is not None
    assert leaf.parent.name == "top"
    assert change.after[leaf.uid]["parent"] == leaf.parent.uid


def test_a_queue_with_pending_claims_cannot_be_retired_or_split(
    company: Company, chief: User
) -> None:
    job = company.submit()
    queue = document("default")

    said = refusal(edit("retire", **{queue.uid: None}), actor=chief, company=company)
    assert said.startswith("queue default has 1 pending and 0 admitted claims; set it to")
    said = refusal(new("below", parent=queue.uid), actor=chief, company=company)
    assert "only a queue without child queues can have claims" in said

    claim = job.attempts.get().claim_uid
    services.claim_release(uid=claim, reason=ReleaseReason.CANCELLED, at=company.at)
    apply(edit("retire", **{queue.uid: None}), actor=chief, company=company)
    assert not queues_for_team(company.team).exists()


def test_a_queue_without_children_accepts_claims_again(company: Company, chief: User) -> None:
    apply(new("child", parent=document("default").uid), actor=chief, company=company)
    assert set(queues_for_team(company.team).values_list("name", flat=True)) == {"child"}

    apply(edit("retire", **{document("child").uid: None}), actor=chief, company=company)
    assert set(queues_for_team(company.team).values_list("name", flat=True)) == {"default"}


def test_a_new_queue_with_name_and_team_of_a_retired_one_restores_it(
    company: Company, chief: User
) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    lab, vision = Queue.objects.get(name="lab"), Queue.objects.get(name="vision")
    claim = company.submit(queue=vision).attempts.get().claim_uid
    services.claim_release(uid=claim, reason=ReleaseReason.CANCELLED, at=company.at)
    every = {document(name).uid: None for name in ("lab", "vision", "speech")}
    apply(edit("retire", **every), actor=chief, company=company)

    wanted = tree_edit_from_yaml(
        "queues: {lab: {team: addresses, below: {vision: {cards: {cpu: {cap: 3}}}, ocr: {}}}}"
    )
    preview = services.queue_tree_preview(wanted, at=company.at, user=chief)
    assert {one.message.split(";")[0] for one in preview.warnings} == {
        f"queue {name} was retired and is restored with these values" for name in ("lab", "vision")
    }
    restored = apply(wanted, actor=chief, company=company)

    assert Queue.objects.get(uid=vision.uid).parent == lab
    assert set(EntitlementRow.objects.filter(queue__retired_at=None).values_list(
        "queue__name", "chip", "guaranteed", "cap")) == {("vision", "cpu", 0, 3)}  # fmt: skip
    assert document("lab").weight == 1
    assert Claim.objects.get(uid=claim).queue == Queue.objects.get(name="vision")
    changes = QueueChange.objects.filter(after__has_key=vision.uid).order_by("id")
    assert [one.action for one in changes] == ["import", "retire", "import"]
    assert (restored.before[vision.uid], restored.after[vision.uid]["parent"]) == (None, lab.uid)
    services.queue_change_revert(restored, actor=chief, at=company.at)
    assert set(queue_tree_documents()) == {company.queue.uid}


def test_a_restored_queue_is_validated_and_needs_the_permissions_of_a_new_one(
    company: Company, chief: User
) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    apply(new("routes", team="routing"), actor=chief, company=company)
    for name in ("vision", "routes"):
        apply(edit("retire", **{document(name).uid: None}), actor=chief, company=company)
    company.make_queue_admin()
    of_team: dict[str, Any] = {"team": "addresses", "parent": document("lab").uid}

    above = new("vision", **of_team, entitlements={"cpu": ChipQuota(guaranteed=3)})
    with pytest.raises(PermissionRefused, match="lab is guaranteed 2"):
        apply(above, actor=company.engineer, company=company)
    with pytest.raises(PermissionRefused, match="not be below a queue of team addresses"):
        apply(new("vision", team="addresses"), actor=company.engineer, company=company)
    assert "guaranteed quotas of the queues below lab" in refusal(
        above, actor=chief, company=company
    )
    assert refusal(new("routes", **of_team), actor=company.engineer, company=company).startswith(
        "the name routes is that of a retired queue of another team; choose another name"
    )
    apply(new("vision", **of_team), actor=company.engineer, company=company)
    assert document("vision").entitlements == {}


def test_an_unknown_queue_cannot_be_edited(company: Company, chief: User) -> None:
    gone = QueueDocument(uid="f" * 32, name="gone")

    said = refusal(edit("edit", **{"f" * 32: gone}), actor=chief, company=company)
    assert said == f"no queue has the UID {'f' * 32}; reload the queues"


def test_an_outdated_edit_is_refused_with_the_differences(company: Company, chief: User) -> None:
    seen = current_tree_fingerprint()
    apply(changed("default", weight=3.0), actor=chief, company=company)

    with pytest.raises(QueueTreeConflict, match="last by chief") as moved:
        apply(replace(changed("default", weight=2.0), seen=seen), actor=chief, company=company)
    assert [one.message for one in moved.value.differences] == [
        "the weight of queue default is 3 instead of 1"
    ]


# -- Who --


def test_a_queue_admin_changes_only_queues_of_their_team(company: Company, chief: User) -> None:
    apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    with pytest.raises(PermissionRefused, match="queue vision is for team addresses"):
        apply(changed("vision", weight=2.0), actor=company.engineer, company=company)
    company.make_queue_admin()

    change = apply(changed("vision", weight=2.0), actor=company.engineer, company=company)
    with pytest.raises(PermissionRefused, match="queue default is for every team"):
        apply(changed("default", weight=2.0), actor=company.engineer, company=company)
    wanted = {"cpu": ChipQuota(guaranteed=3)}
    with pytest.raises(PermissionRefused, match="lab is guaranteed 2"):
        apply(changed("vision", entitlements=wanted), actor=company.engineer, company=company)

    assert change in queue_changes_visible(company.engineer)
    apply(changed("default", weight=2.0), actor=chief, company=company)
    assert queue_changes_visible(company.engineer).count() == 2
    assert queue_changes_visible(chief).count() == 3
    assert not queue_changes_visible(company.stranger).exists()


# -- Back --


def test_every_kind_of_change_can_be_reverted(company: Company, chief: User) -> None:
    before = queue_tree_documents()
    change = apply(tree_edit_from_yaml(FILE), actor=chief, company=company)
    grown = queue_tree_documents()
    gone = apply(
        edit("retire", **{document("vision").uid: None, document("speech").uid: None}),
        actor=chief,
        company=company,
    )

    back = services.queue_change_revert(gone, actor=chief, at=company.at, note="too early")
    assert queue_tree_documents() == grown
    assert (back.action, back.note, back.reverts) == ("revert", "too early", gone)
    services.queue_change_revert(change, actor=chief, at=company.at)
    assert queue_tree_documents() == before


def test_a_change_with_later_changes_cannot_be_reverted(company: Company, chief: User) -> None:
    first = apply(changed("default", weight=3.0), actor=chief, company=company)
    apply(changed("default", description="for all"), actor=chief, company=company)

    with pytest.raises(QueueTreeConflict) as moved:
        services.queue_change_revert(first, actor=chief, at=company.at)
    assert str(moved.value) == (
        "the queues have been changed since: the description of queue default is changed"
    )


# -- Before it is saved --


def test_a_preview_lists_gains_and_reclaims_and_changes_nothing(
    company: Company, chief: User
) -> None:
    """The whole node is lent to one job; the owner's claim is pending."""
    owner = Queue.objects.create(name="owner", team=company.team)
    entitle(company.queue, guaranteed=0)
    lent = company.submit("long training", cards=2)
    company.schedule()
    Claim.objects.update(preemptible=True)
    company.later(timedelta(minutes=30))
    pending = company.submit("urgent fix", cards=2, queue=owner)
    before = current_tree_fingerprint()
    entitlements = {"cpu": ChipQuota(guaranteed=2)}
    wanted = changed("owner", entitlements=entitlements)

    preview = services.queue_tree_preview(wanted, at=company.at, user=chief)

    assert [one.message for one in preview.differences] == [
        "queue owner is guaranteed 2 × cpu instead of 0"
    ]
    (gain,) = preview.gains
    assert (gain.queue, gain.guaranteed_before, gain.guaranteed_after) == ("owner", 0, 2)
    assert gain.starting == (pending.attempts.get().claim_uid,)
    (reclaim,) = preview.reclaims
    assert (reclaim.claim, reclaim.work.name) == (lent.attempts.get().claim_uid, "long training")
    assert (reclaim.work.team, reclaim.queue, reclaim.cards) == ("Addresses", "default", 2)
    assert reclaim.lost_seconds == 1800
    assert preview.fingerprint == before == current_tree_fingerprint()
    with pytest.raises(PermissionRefused):
        services.queue_tree_preview(wanted, at=company.at, user=company.stranger)


def test_a_preview_of_an_invalid_tree_has_only_findings(company: Company, chief: User) -> None:
    wanted = changed("default", entitlements={"cpu": ChipQuota(guaranteed=4, cap=2)})

    preview = services.queue_tree_preview(wanted, at=company.at, user=chief)

    assert preview.findings[0].message.startswith(
        "queue default guarantees 4 × cpu, more than its cap"
    )
    assert not preview.gains
