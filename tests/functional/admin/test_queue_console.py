"""The queue console for one queue: create, edit, move, set state, retire; each with a preview."""

from __future__ import annotations

from html import unescape

from django.test import Client

from apps.accounts.models import AuditEntry, User
from apps.quotas.models import Claim, Queue, QueueChange
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.quotas.queue_documents import QUEUE_FIELDS
from controlplane.domain.quotas.queues import QUOTA_FIELDS, QueueState
from tests.cases import for_each_case
from tests.factories import usage
from tests.functional.admin import consoles
from tests.functional.admin.consoles import at, edit_page, filled, preview, save
from tests.functional.admin.pages import page
from tests.functional.api.callers import API, caller, wrong_fields
from tests.integration.company import Company, entitle


def refusals(response: object) -> str:
    review = response.context["review"]  # type: ignore[attr-defined]
    return " ".join(review.refusals)


def test_the_tree_shows_quota_usage_and_warnings_of_each_queue(
    company: Company, browser: Client
) -> None:
    top = consoles.queue(company, "top", guaranteed=2, reserved=1, cap=6)
    low = consoles.queue(company, "low", parent=top, guaranteed=3)
    company.submit(queue=low)
    company.schedule()

    response = browser.get(page(Queue))

    rows = {row.queue.name: row for row in response.context["rows"]}
    assert list(rows) == ["default", "top", "low"]
    cell = rows["top"].cells[0]
    assert (cell.text, cell.details) == ("used 1, guaranteed 2, cap 6", "reserved 1")
    assert (cell.below, cell.overcommitted) == (
        "3 of 2 guaranteed cards assigned to child queues",
        True,
    )
    assert "the guaranteed quotas of the queues below top total 3" in " ".join(rows["top"].warnings)
    assert rows["low"].waiting == ()
    assert [row.queue.name for row in browser.get(page(Queue), {"q": "lo"}).context["rows"]] == [
        "top",
        "low",
    ]


def test_a_change_is_saved_with_note_and_audit_event(company: Company, browser: Client) -> None:
    response = save(
        browser,
        edit_page(company.queue),
        weight="2.5",
        borrows=None,
        note="agreed on Monday",
        **{"cards-cpu-guaranteed": "1", "cards-cpu-cap": "2", "cards-total-cap": "9"},
    )

    assert response.status_code == 302
    company.queue.refresh_from_db()
    assert (company.queue.weight, company.queue.borrows, company.queue.lends) == (2.5, False, True)
    stated = company.queue.entitlements.values_list("chip", "guaranteed", "cap")
    assert set(stated) == {("cpu", 1, 2), ("", 0, 9)}
    change = QueueChange.objects.get()
    assert (change.action, change.actor_name, change.note) == ("edit", "boss", "agreed on Monday")
    entry = AuditEntry.objects.get(action="queue.edit")
    assert (entry.actor_name, entry.object_uid) == ("boss", company.queue.uid)


def test_a_refused_change_keeps_the_input_and_saves_nothing(
    company: Company, browser: Client
) -> None:
    entitle(company.queue, guaranteed=2, cap=2)

    response = save(
        browser,
        edit_page(company.queue),
        description="half typed",
        **{"cards-cpu-guaranteed": "5", "cards-cpu-reserved": "7"},
    )

    assert response.status_code == 200
    assert "reserves 7 × cpu, more than its guarantee of 5" in refusals(response)
    assert "guarantees 5 × cpu, more than its cap of 2" in refusals(response)
    shown = response.content.decode()
    assert "half typed" in shown
    assert 'name="cards-cpu-reserved" value="7"' in shown
    assert not QueueChange.objects.exists()


@for_each_case(
    ("changes", "label", "message"),
    [
        ({"name": ""}, "Name", "This field is required."),
        (
            {"name": "two words"},
            "Name",
            "name must be 1 to 60 Latin letters, digits, hyphens and underscores, got 'two words'",
        ),
        ({"weight": "much"}, "Weight", "weight must be a number greater than 0, got 'much'"),
        ({"weight": "0"}, "Weight", "weight must be a number greater than 0, got 0"),
        ({"weight": ""}, "Weight", "This field is required."),
        ({"parent": "0" * 32}, "Parent queue", "not one of the available choices"),
        (
            {"cards-cpu-guaranteed": "eight"},
            "Guaranteed cards",
            "guaranteed must be a whole number of cards from 0, got 'eight'",
        ),
        (
            {"cards-cpu-cap": "-1"},
            "Cap (cards)",
            "cap must be a whole number of cards from 0, got -1",
        ),
    ],
)
def test_an_invalid_field_is_named_in_the_preview(
    company: Company, browser: Client, changes: dict[str, str], label: str, message: str
) -> None:
    review = preview(browser, edit_page(company.queue), **changes).context["review"]

    (error,) = review.form_errors
    assert error.label == label
    assert message in error.message
    assert review.blocked


def test_a_value_is_refused_alike_in_a_file_by_rest_and_in_the_admin(
    company: Company, browser: Client, boss: User
) -> None:
    boss_client = caller(boss)
    for name, entered, value in (
        ("weight", "-2.5", -2.5),
        ("max_running_per_user", "0", 0),
        ("description", "x" * 2001, "x" * 2001),
    ):
        message = QUEUE_FIELDS[name].error(value)
        form = preview(browser, edit_page(company.queue), **{name: entered}).context["review"]
        file = preview(browser, at("import"), text=f"queues: {{default: {{{name}: {entered}}}}}")
        rest = boss_client.patch(f"{API}/queues/{company.queue.uid}", {name: value}, format="json")
        assert [error.message for error in form.form_errors] == [message]
        assert wrong_fields(rest) == {name: message}
        (error,) = file.context["review"].form_errors
        assert error.message == f"default: {message}"


def test_the_form_shows_label_help_and_value_of_each_declared_field(
    company: Company, browser: Client
) -> None:
    Queue.objects.filter(pk=company.queue.pk).update(weight=2.5, max_running_per_user=None)
    entitle(company.queue, guaranteed=2, cap=2)

    response = browser.get(edit_page(company.queue))

    form, shown = response.context["form"], unescape(response.content.decode())
    assert set(form.fields) == set(QUEUE_FIELDS)
    for each in (*QUEUE_FIELDS.values(), *QUOTA_FIELDS.values()):
        assert each.label in shown
        assert each.help in shown
    assert (form["weight"].value(), form["max_running_per_user"].value()) == ("2.5", None)
    row = response.context["cards"].rows[0]
    assert [row[name].value() for name in QUOTA_FIELDS] == ["", "2", "2"]


def test_the_preview_lists_claims_that_the_next_cycle_evicts(
    company: Company, browser: Client
) -> None:
    mine = consoles.queue(company, "mine", team=company.team)
    theirs = consoles.queue(company, "theirs", team=company.other_team)
    running = consoles.borrowing(company, mine, theirs, user=company.stranger)
    address = edit_page(mine)
    reduced = {"cards-cpu-guaranteed": "2"}

    response = preview(browser, address, **reduced)
    review = response.context["review"]

    assert [(one.claim, one.work.name, one.cards) for one in review.reclaims] == [
        (running.uid, "secret sweep", 2)
    ]
    (gain,) = [one for one in review.gains if one.chip == "cpu"]
    assert (gain.queue, gain.guaranteed_before, gain.guaranteed_after) == ("mine", 0, 2)
    assert (gain.cards_now, len(gain.starting)) == (2, 1)
    assert review.label == "Save: 1 claim of Routing will be evicted"
    assert review.label in response.content.decode()
    assert not QueueChange.objects.exists()

    unconfirmed = save(browser, address, **reduced)
    assert "Type mine to confirm" in str(unconfirmed.context["saving"].errors)
    assert not QueueChange.objects.exists()

    assert save(browser, address, **reduced, confirm="mine").status_code == 302
    company.schedule()
    running.refresh_from_db()
    assert running.state == ClaimState.REVOKING


def test_a_concurrent_change_is_shown_and_the_input_kept(company: Company, browser: Client) -> None:
    address = edit_page(company.queue)
    sent = filled(browser, address, weight="3", save="1")
    other = Client()
    other.force_login(User.objects.create_superuser("rival"))
    save(other, address, description="changed meanwhile", note="was first")

    response = browser.post(address, sent)

    (entry,) = response.context["concurrent_changes"]
    assert (entry.change.actor_name, entry.change.note) == ("rival", "was first")
    assert 'name="weight" value="3"' in response.content.decode()
    assert QueueChange.objects.count() == 1
    # What theirs would do to it is told: it would take the description away again.
    messages = [one.message for one in response.context["review"].differences]
    assert "the description of queue default is changed" in messages
    sent["seen"] = response.context["saving"]["seen"].value()
    assert browser.post(address, {**sent, "description": "both"}).status_code == 302
    company.queue.refresh_from_db()
    assert (company.queue.weight, company.queue.description) == (3, "both")


def test_a_queue_is_created_below_another_with_its_own_chip(
    company: Company, browser: Client
) -> None:
    top = consoles.queue(company, "top", team=company.team, guaranteed=2)
    address = at("add", below=top.uid)
    sent = filled(browser, address, name="vision")
    more = browser.post(address, {**sent, "another": "nvidia-h800", "add_chip": "1"})
    assert "nvidia-h800" in more.context["cards"].chips
    assert not Queue.objects.filter(name="vision").exists()

    sent |= {"chips": ["cpu", "nvidia-h800"], "cards-nvidia-h800-guaranteed": "4"}
    assert browser.post(address, {**sent, "save": "1"}).status_code == 302

    created = Queue.objects.get(name="vision")
    assert (created.parent, created.team) == (top, company.team)
    assert [(one.chip, one.guaranteed) for one in created.entitlements.all()] == [
        ("nvidia-h800", 4)
    ]

    # A form with the name of a retired queue restores it.
    Queue.objects.filter(pk=created.pk).update(retired_at=company.at)
    again = filled(browser, address, name="vision")
    review = browser.post(address, {**again, "preview": "1"}).context["review"]
    assert "queue vision was retired and is restored" in review.warnings[0]
    assert browser.post(address, {**again, "save": "1"}).status_code == 302
    restored = Queue.objects.get(name="vision")
    assert (restored.pk, restored.retired_at, restored.parent) == (created.pk, None, top)
    assert not restored.entitlements.exists()


def test_a_queue_is_moved_but_not_below_itself(company: Company, browser: Client) -> None:
    top, other = consoles.queue(company, "top"), consoles.queue(company, "other")
    consoles.queue(company, "low", parent=top)
    address = at("move", top.pk)

    offered = [label for _, label in browser.get(address).context["form"]["parent"].field.choices]
    assert offered == ["at the top", "default", "other"]
    assert save(browser, address, parent=other.uid).status_code == 302

    top.refresh_from_db()
    assert top.parent == other
    assert QueueChange.objects.get().action == "move"


def test_a_queue_is_set_to_draining(company: Company, browser: Client) -> None:
    address = at("state", company.queue.pk, to="draining")

    assert [one.message for one in browser.get(address).context["review"].differences] == [
        "queue default is drained: it accepts no new claims; pending claims are still admitted"
    ]
    assert save(browser, address, to="draining").status_code == 302

    company.queue.refresh_from_db()
    assert company.queue.state == QueueState.DRAINING


def test_only_an_empty_queue_is_retired_and_its_history_kept(
    company: Company, browser: Client
) -> None:
    address = at("retire", company.queue.pk)
    claim = usage.waiting(queue=company.queue, team=company.team)
    assert "1 pending and 0 admitted claims" in refusals(browser.get(address))
    assert save(browser, address).status_code == 200

    Claim.objects.filter(pk=claim.pk).delete()
    assert save(browser, address, note="moved away").status_code == 302

    company.queue.refresh_from_db()
    assert company.queue.retired_at is not None
    history = browser.get(edit_page(company.queue), follow=True)
    assert "moved away" in history.content.decode()
    assert "default" not in [row.queue.name for row in browser.get(page(Queue)).context["rows"]]


def test_a_cross_site_request_is_rejected(company: Company, boss: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(boss)
    addresses = (edit_page(company.queue), at("state", company.queue.pk), at("import"), at("bulk"))

    for address in addresses:
        assert browser.post(address, {"save": "1"}).status_code == 403

    assert not QueueChange.objects.exists()
