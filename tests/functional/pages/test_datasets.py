"""Datasets: what changed between versions, their rows, what is odd in them, a look before the upload."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import FileResponse
from django.test import Client

from apps.models.models import Artifact, Dataset, DatasetVersion
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany, FilledCompany


def row(number: int, **more: str) -> str:
    return json.dumps({"instruction": f"question {number}", "output": f"answer {number}", **more})


def send(
    browser: Client, empty: EmptyCompany, lines: list[str], name: str = "parcels"
) -> DatasetVersion:
    file = SimpleUploadedFile(f"{name}.jsonl", "\n".join(lines).encode())
    form = {"team": empty.team.uid, "name": name, "file": file}
    known = set(DatasetVersion.objects.values_list("pk", flat=True))
    browser.post("/datasets/new", form)
    return DatasetVersion.objects.exclude(pk__in=known).get()


def inspect_upload(browser: Client, empty: EmptyCompany, body: str, **fields: str) -> str:
    file = SimpleUploadedFile("parcels.jsonl", body.encode())
    form = {"team": empty.team.uid, "name": "parcels", "file": file, **fields}
    return browser.post("/datasets/check", form).text


def test_the_list_is_narrowed_by_name_and_says_so_where_nothing_is_left(
    browser: Client, empty: EmptyCompany
) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    send(browser, empty, [row(n) for n in range(30)], name="streets")
    text = browser.get("/datasets?text=street").text
    assert ">streets<" in text
    assert ">parcels<" not in text
    assert "No matching datasets" in browser.get("/datasets?text=nowhere").text


def test_the_list_is_ordered_by_rows(browser: Client, empty: EmptyCompany) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    send(browser, empty, [row(n) for n in range(30)], name="streets")
    text = browser.get("/datasets?sort=rows").text
    assert text.index(">parcels<") < text.index(">streets<")
    text = browser.get("/datasets?sort=-rows").text
    assert text.index(">streets<") < text.index(">parcels<")


def test_a_dataset_shows_how_its_versions_grew(browser: Client, empty: EmptyCompany) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    newest = send(browser, empty, [row(n) for n in range(5, 32)])
    text = browser.get(f"/datasets/{newest.dataset.uid}").text
    assert ">+7<" in text
    assert text.index(">v2<") < text.index(">v1<")


def test_a_version_counts_added_and_removed_rows(browser: Client, empty: EmptyCompany) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    newest = send(browser, empty, [row(n) for n in range(5, 32)])
    text = browser.get(f"/datasets/versions/{newest.uid}").text
    assert "12 rows added, 5 removed" in text


def test_rows_are_not_compared_with_removed_ones(browser: Client, empty: EmptyCompany) -> None:
    first = send(browser, empty, [row(n) for n in range(20)])
    newest = send(browser, empty, [row(n) for n in range(5, 32)])
    Artifact.objects.filter(pk=first.artifact.pk).update(removed_at=first.created_at)
    text = browser.get(f"/datasets/versions/{newest.uid}").text
    assert "rows added" not in text
    assert "20 rows; too many to compare" in text


def test_repeated_rows_are_named_by_their_number(browser: Client, empty: EmptyCompany) -> None:
    version = send(browser, empty, [*(row(n) for n in range(20)), row(3)])
    text = browser.get(f"/datasets/versions/{version.uid}").text
    assert "1 duplicate row" in text
    assert "Row 21 of the file." in text


def test_a_row_in_two_splits_is_told_apart_from_one_that_is_repeated(
    browser: Client, empty: EmptyCompany
) -> None:
    lines = [row(n, split="train") for n in range(20)]
    lines += [row(4, split="test"), row(40, split="test"), row(5, split="train")]
    version = send(browser, empty, lines)
    text = browser.get(f"/datasets/versions/{version.uid}").text
    assert "1 row is in more than one split" in text
    assert "Row 21 of the file." in text
    assert "1 duplicate row" in text
    assert "Row 23 of the file." in text


def test_rows_with_images_are_told_before_and_after_the_upload(
    browser: Client, empty: EmptyCompany
) -> None:
    lines = [row(n, image="a.png" if n % 2 else "") for n in range(20)]
    notice = "10 rows have images, audio or video; only their text is stored."
    assert notice in inspect_upload(browser, empty, "\n".join(lines))
    version = send(browser, empty, lines)
    assert notice in browser.get(f"/datasets/versions/{version.uid}").text


def test_a_version_of_before_warnings_were_noted_still_tells_what_it_knows(
    browser: Client, empty: EmptyCompany
) -> None:
    version = send(browser, empty, [*(row(n) for n in range(20)), row(3)])
    old = {k: v for k, v in version.statistics.items() if k not in ("warnings", "characters")}
    DatasetVersion.objects.filter(pk=version.pk).update(statistics=old)
    response = browser.get(f"/datasets/versions/{version.uid}")
    assert response.status_code == 200
    assert "1 duplicate row" in response.text


def test_rows_go_on_where_the_page_before_ended(browser: Client, empty: EmptyCompany) -> None:
    version = send(browser, empty, [row(n, split="train") for n in range(45)])
    address = f"/datasets/versions/{version.uid}/rows"
    seen: list[int] = []
    query = "?split=train"
    for _page in range(3):
        response = browser.get(address + query)
        page = response.context["page"]
        seen += [one.number for one in page.rows]
        if page.next_at is None:
            break
        query = f"?split=train&at={page.next_at[0]}&row={page.next_at[1]}"
    assert seen == list(range(1, 46))


def test_only_rows_with_the_text_are_shown(browser: Client, empty: EmptyCompany) -> None:
    version = send(browser, empty, [row(n, split="train") for n in range(45)])
    address = f"/datasets/versions/{version.uid}/rows?split=train"
    page = browser.get(address + "&q=QUESTION 31").context["page"]
    assert [one.number for one in page.rows] == [32]
    assert "No matching rows" in browser.get(address + "&q=nothing of that").text


@pytest.mark.parametrize("query", ["?split=nothing", "?split=../x", "?split=train&split=nothing"])
def test_there_are_no_rows_of_a_split_that_is_none(
    browser: Client, filled: FilledCompany, query: str
) -> None:
    address = f"/datasets/versions/{filled.dataset.uid}/rows{query}"
    assert browser.get(address).status_code == 404


@for_each_case("place", ["999999999", "-3", "x", "٣", "9" * 40])
def test_an_offset_beyond_the_rows_is_not_an_error(
    browser: Client, filled: FilledCompany, place: str
) -> None:
    address = f"/datasets/versions/{filled.dataset.uid}/rows?split=train&at={place}&row={place}"
    assert browser.get(address).status_code == 200


def test_removed_rows_are_reported(browser: Client, filled: FilledCompany) -> None:
    artifact = filled.dataset.artifact
    Artifact.objects.filter(pk=artifact.pk).update(
        deleted_at=artifact.created_at, removed_at=artifact.created_at
    )
    text = browser.get(f"/datasets/versions/{filled.dataset.uid}/rows").text
    assert "No rows available" in text


def test_a_conversation_is_shown_as_one(browser: Client, empty: EmptyCompany) -> None:
    talk = {
        "messages": [
            {"role": "user", "content": "where to?"},
            {"role": "assistant", "content": "<b>home</b>"},
        ]
    }
    lines = [json.dumps(talk), *(json.dumps({**talk, "n": n}) for n in range(12))]
    version = send(browser, empty, lines, name="talks")
    text = browser.get(f"/datasets/versions/{version.uid}/rows").text
    assert 'class="nf-bubble" data-role="user"' in text
    assert "&lt;b&gt;home&lt;/b&gt;" in text


def test_a_split_is_saved_as_json_lines(browser: Client, filled: FilledCompany) -> None:
    response = browser.get(f"/datasets/versions/{filled.dataset.uid}/files/train")
    assert isinstance(response, FileResponse)
    lines = b"".join(response.streaming_content).splitlines()
    assert len(lines) == filled.dataset.statistics["rows_by_split"]["train"]
    assert "addresses-v1-train.jsonl" in response["Content-Disposition"]
    missing = browser.get(f"/datasets/versions/{filled.dataset.uid}/files/nothing")
    assert missing.status_code == 404


def test_the_chart_counts_every_row_once(browser: Client, filled: FilledCompany) -> None:
    body = browser.get(f"/datasets/versions/{filled.dataset.uid}/lengths").json()
    (series,) = body["series"]
    assert sum(series["y"]) == filled.dataset.row_count
    assert len(series["x"]) == len(series["y"])


def test_a_dataset_in_use_cannot_be_deleted_and_shows_why(
    browser: Client, filled: FilledCompany
) -> None:
    text = browser.get(f"/datasets/versions/{filled.dataset.uid}").text
    assert "Cannot be deleted:" in text
    assert f"/storage/artifacts/{filled.dataset.artifact.uid}/delete" not in text


def test_an_unused_dataset_can_be_deleted_by_contributors(
    browser: Client, viewer: Client, empty: EmptyCompany
) -> None:
    version = send(browser, empty, [row(n) for n in range(20)])
    address = f"/datasets/versions/{version.uid}"
    path = f"/storage/artifacts/{version.artifact.uid}/delete"
    assert path in browser.get(address).text
    assert path not in viewer.get(address).text
    browser.post(path)
    version.artifact.refresh_from_db()
    assert not version.artifact.usable
    text = browser.get(address).text
    assert "Restore" in text
    assert path not in text


def test_a_check_describes_the_file_and_stores_nothing(
    browser: Client, empty: EmptyCompany
) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    text = inspect_upload(browser, empty, "\n".join(row(n) for n in range(12)))
    assert "All 12 rows are valid." in text
    assert "Creates version 2 of parcels." in text
    assert DatasetVersion.objects.count() == 1
    fresh = inspect_upload(browser, empty, row(1), name="streets", part="1")
    assert "The first 1 row is valid" in fresh
    assert "Creates the dataset streets." in fresh
    assert not Dataset.objects.filter(name="streets").exists()


def test_a_check_names_invalid_rows(browser: Client, empty: EmptyCompany) -> None:
    text = inspect_upload(browser, empty, row(1) + '\n{"instruction": "no answer"}')
    assert "1 problem found" in text
    assert "Row 2:" in text


def test_a_check_reveals_nothing_of_another_teams_dataset(
    browser: Client, outsider: Client, empty: EmptyCompany
) -> None:
    send(browser, empty, [row(n) for n in range(20)])
    text = inspect_upload(outsider, empty, "\n".join(row(n) for n in range(12)))
    assert "version 2" not in text


def test_a_script_upload_gets_the_url_of_the_version(browser: Client, empty: EmptyCompany) -> None:
    file = SimpleUploadedFile("parcels.jsonl", "\n".join(row(n) for n in range(20)).encode())
    form = {"team": empty.team.uid, "name": "parcels", "file": file}
    response = browser.post("/datasets/new", form, headers={"X-Requested-With": "XMLHttpRequest"})
    version = DatasetVersion.objects.get()
    assert response.json() == {"to": f"/datasets/versions/{version.uid}"}


def test_a_new_version_begins_with_the_name_and_the_team(
    browser: Client, empty: EmptyCompany
) -> None:
    text = browser.get(f"/datasets/new?name=parcels&team={empty.team.uid}").text
    assert "New version of parcels" in text
    assert 'value="parcels"' in text
    assert f'value="{empty.team.uid}"' in text
