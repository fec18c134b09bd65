"""The queue console for many queues: bulk edit, import and export, history."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.quotas.models import Queue, QueueChange
from controlplane.domain.quotas.queues import QueueState
from tests.functional.admin import consoles
from tests.functional.admin.consoles import at, edit_page, filled, preview, save
from tests.functional.admin.pages import page
from tests.integration.company import Company, entitle

FILE = """
queues:
  default: {}
  lab:
    team: addresses
    cards: {cpu: {reserved: 1, guaranteed: 2}}
    below:
      vision: {cards: {cpu: {guaranteed: 1}}}
"""


@pytest.fixture
def lab(company: Company, browser: Client) -> Queue:
    assert save(browser, at("import"), text=FILE, note="first draft").status_code == 302
    return Queue.objects.get(name="lab")


def test_bulk_edit_changes_one_chip_of_many_queues_in_one_change(
    company: Company, browser: Client, lab: Queue
) -> None:
    vision = Queue.objects.get(name="vision")
    address = at("bulk", of="chip:cpu", uid=[lab.uid, vision.uid])

    response = save(browser, address, **{f"{lab.uid}-guaranteed": "4", f"{vision.uid}-cap": "3"})

    assert response.status_code == 302
    assert [(one.reserved, one.guaranteed, one.cap) for one in lab.entitlements.all()] == [
        (1, 4, None)
    ]
    assert vision.entitlements.get().cap == 3
    change = QueueChange.objects.first()
    assert change is not None
    assert (change.action, set(change.after)) == ("bulk", {lab.uid, vision.uid})


def test_bulk_edit_of_state_and_weight_is_all_or_nothing(
    company: Company, browser: Client, lab: Queue
) -> None:
    vision = Queue.objects.get(name="vision")
    address = at("bulk", of="fields", uid=[lab.uid, vision.uid])
    changes = {f"{vision.uid}-state": "closed", f"{lab.uid}-weight": "-1"}

    refused = save(browser, address, **changes)
    (error,) = refused.context["review"].form_errors
    assert error.message == "weight must be a number greater than 0, got -1"
    assert Queue.objects.get(name="vision").state == QueueState.OPEN

    assert save(browser, address, **{**changes, f"{lab.uid}-weight": "2"}).status_code == 302
    assert Queue.objects.get(name="vision").state == QueueState.CLOSED
    assert Queue.objects.get(name="lab").weight == 2


def test_an_exported_tree_is_imported_without_a_difference(
    company: Company, browser: Client, lab: Queue
) -> None:
    whole = browser.get(at("export"))
    part = browser.get(at("export", of=lab.uid))

    assert whole["Content-Disposition"] == 'attachment; filename="queues.yaml"'
    assert "default" not in part.content.decode()
    for file in (whole, part):
        review = preview(browser, at("import"), text=file.content.decode()).context["review"]
        assert review.summary == "No changes of the queues."


def test_an_import_is_previewed_as_differences(
    company: Company, browser: Client, lab: Queue
) -> None:
    text = FILE.replace("guaranteed: 2", "guaranteed: 3").replace(
        "      vision: {cards: {cpu: {guaranteed: 1}}}\n", "      speech: {weight: 2}\n"
    )
    changes = QueueChange.objects.count()

    review = preview(browser, at("import"), text=text).context["review"]
    pruned = preview(browser, at("import"), text=text, prune="on")

    messages = [one.message for one in review.differences]
    assert "queue lab is guaranteed 3 × cpu instead of 2" in messages
    assert "queue speech is created under lab" in messages
    assert not [message for message in messages if "retired" in message]
    shown = pruned.content.decode()
    assert "queue vision under lab is retired" in shown
    assert '<div class="qc-minus"><span>2</span></div>' in shown
    assert QueueChange.objects.count() == changes


def test_an_uploaded_file_is_resubmitted_as_text(company: Company, browser: Client) -> None:
    upload = SimpleUploadedFile("queues.yaml", FILE.encode(), "application/yaml")

    response = browser.post(at("import"), {**filled(browser, at("import")), "file": upload})

    assert "queue lab is created at the top level" in response.content.decode()
    assert response.context["form"]["text"].value() == FILE
    assert not Queue.objects.filter(name="lab").exists()


def test_every_error_of_a_file_is_shown_with_its_position(
    company: Company, browser: Client
) -> None:
    text = "queues: {lab: {cards: {cpu: {guaranteed: eight}}, colour: red}}"

    form_errors = preview(browser, at("import"), text=text).context["review"].form_errors

    messages = " ".join(one.message for one in form_errors)
    assert "lab › cpu: guaranteed must be a whole number of cards from 0, got 'eight'" in messages
    assert "lab: unknown field 'colour'" in messages


def test_the_history_shows_and_reverts_changes(
    company: Company, browser: Client, lab: Queue
) -> None:
    save(browser, edit_page(lab), weight="7", note="by mistake")
    change = QueueChange.objects.get(note="by mistake")
    listed = browser.get(at("changes")).content.decode()
    assert "the weight of queue lab is 7 instead of 1" in listed
    assert "by mistake" in listed
    address = at("change_detail", change.uid)
    assert "the weight of queue lab is 1 instead of 7" in browser.get(address).content.decode()

    assert save(browser, address, note="taken back").status_code == 302

    lab.refresh_from_db()
    assert lab.weight == 1
    newest = QueueChange.objects.first()
    assert newest is not None
    assert (newest.action, newest.reverts, newest.note) == ("revert", change, "taken back")
    assert "This change was reverted later." in browser.get(address).content.decode()


def test_a_change_with_later_changes_is_not_reverted(
    company: Company, browser: Client, lab: Queue
) -> None:
    save(browser, edit_page(lab), weight="7", note="first")
    save(browser, edit_page(lab), weight="8", note="second")
    change = QueueChange.objects.get(note="first")

    response = browser.get(at("change_detail", change.uid))

    assert [one.message for one in response.context["rows_changed_since"]] == [
        "the weight of queue lab is 8 instead of 7"
    ]
    assert browser.post(at("change_detail", change.uid), {"save": "1"}).status_code == 200
    lab.refresh_from_db()
    assert lab.weight == 8


def test_a_bulk_edit_that_evicts_claims_requires_confirmation(
    company: Company, browser: Client
) -> None:
    mine = consoles.queue(company, "mine", team=company.team)
    theirs = consoles.queue(company, "theirs", team=company.other_team)
    consoles.borrowing(company, mine, theirs, user=company.stranger)
    address = at("bulk", of="chip:cpu", uid=[mine.uid])
    reduced = {f"{mine.uid}-guaranteed": "2"}

    assert save(browser, address, **reduced).status_code == 200
    assert not mine.entitlements.exists()
    assert save(browser, address, **reduced, confirm="stop").status_code == 302
    assert mine.entitlements.get().guaranteed == 2


def test_the_number_of_queries_does_not_grow_with_queues(company: Company, browser: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert browser.get(page(Queue)).status_code == 200
        return len(caught)

    entitle(company.queue, guaranteed=1)
    # What is read once and kept does not count.
    queries()
    few = queries()
    for number in range(50):
        top = consoles.queue(company, f"top-{number}", guaranteed=2)
        consoles.queue(company, f"low-{number}", parent=top, guaranteed=1)
    assert queries() == few
