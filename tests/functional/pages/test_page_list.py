"""The one list of pages has every page: what is looked at by machine cannot miss a new address."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver, get_resolver, resolve

from tests.e2e.pages import NO_PAGES, PAGES

#: Not pages of ours: REST and what runs between the parts; Django's admin has pages of its own.
ELSEWHERE = ("api/", "internal/", "admin/")


def _named(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in resolver.url_patterns:
        path = prefix + str(pattern.pattern)
        if path.startswith(ELSEWHERE):
            continue
        if isinstance(pattern, URLPattern):
            yield path, pattern.name or ""
        else:
            yield from _named(pattern, path)


def test_every_address_is_a_page_in_the_list_or_says_why_it_is_none() -> None:
    known = {page.url_name for page in PAGES} | set(NO_PAGES)
    missing = [f"{path} ({name})" for path, name in _named(get_resolver()) if name not in known]
    assert missing == [], "add them to PAGES or NO_PAGES in tests/e2e/pages.py"


def test_every_address_has_a_name_of_its_own() -> None:
    names = [name for _path, name in _named(get_resolver()) if name]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_the_list_names_only_what_is_there() -> None:
    there = {name for _path, name in _named(get_resolver())}
    assert {page.url_name for page in PAGES} - there == set()
    assert set(NO_PAGES) - there == set()


def test_each_path_in_the_list_leads_to_the_page_that_it_names() -> None:
    class Anything(dict[str, str]):
        def __missing__(self, name: str) -> str:
            return "0" * 32

    for page in PAGES:
        path = page.address(Anything()).partition("?")[0]
        assert resolve(path).url_name == page.url_name, page.title


def test_titles_of_pages_name_one_file_each() -> None:
    titles = [page.title for page in PAGES]
    assert sorted(titles) == sorted(set(titles))
