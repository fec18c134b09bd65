"""The playground in a browser: what is said, measured, kept, tried again, and shown as a program's call.

The sample company has no gateway, so the test answers the page's calls in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect
from playwright.sync_api import Page as Tab

from tests.e2e.sample_product import SampleProduct
from tests.e2e.viewers import contexts

pytestmark = pytest.mark.browser

CHAT = "**/playground/*/chat"


def stream(*pieces: str, reason: str = "stop") -> str:
    """Server-sent events as the gateway sends them."""
    events: list[dict[str, Any]] = [{"choices": [{"delta": {"content": one}}]} for one in pieces]
    events.append({"choices": [{"delta": {}, "finish_reason": reason}]})
    events.append({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5}})
    return "".join(f"data: {json.dumps(one)}\n\n" for one in events) + "data: [DONE]\n\n"


class Gateway:
    """Gives one answer after the other, and keeps what it was asked."""

    def __init__(self, tab: Tab) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        tab.route(CHAT, self._answer)

    def will_say(self, *pieces: str, reason: str = "stop") -> None:
        self.answers.append(
            {"content_type": "text/event-stream", "body": stream(*pieces, reason=reason)}
        )

    def will_break_off(self, *pieces: str) -> None:
        content = stream(*pieces).removesuffix("data: [DONE]\n\n")
        self.answers.append({"content_type": "text/event-stream", "body": content})

    def will_refuse(self, status: int, message: str, **headers: str) -> None:
        body = json.dumps({"error": {"message": message}})
        self.answers.append({"status": status, "headers": headers, "body": body})

    def _answer(self, route: Route) -> None:
        self.asked.append(route.request.post_data_json or {})
        # Without an answer left, the call stays open.
        if self.answers:
            route.fulfill(**self.answers.pop(0))


@pytest.fixture
def tab(browser: Browser, sample: SampleProduct) -> Iterator[Tab]:
    with contexts(browser, sample, viewport={"width": 1440, "height": 900}) as viewers:
        page = viewers["person"].new_page()
        page.goto("/playground")
        yield page


@pytest.fixture
def gateway(tab: Tab) -> Gateway:
    return Gateway(tab)


def say(tab: Tab, text: str) -> None:
    tab.get_by_label("Message").fill(text)
    tab.get_by_label("Message").press("Enter")


def messages(tab: Tab) -> list[str]:
    return tab.locator("#conversation .nf-bubble > span").all_inner_texts()


def answered(tab: Tab, text: str) -> None:
    expect(tab.locator('[data-role="assistant"] > span').last).to_have_text(text)
    expect(tab.get_by_role("button", name="Send")).to_be_visible()


def test_an_answer_is_written_and_measured(tab: Tab, gateway: Gateway) -> None:
    gateway.will_say("Old ", "Mill ", "Lane")
    say(tab, "Where?")
    answered(tab, "Old Mill Lane")
    measured = tab.locator("[data-figures]").last
    expect(measured).to_contain_text("12 input tokens, 5 output tokens")
    expect(measured).to_contain_text("first token ")
    expect(measured).to_contain_text("s total")


def test_the_conversation_goes_on_with_settings_and_survives_another_model(
    tab: Tab, gateway: Gateway
) -> None:
    gateway.will_say("one")
    tab.get_by_label("System prompt").fill("Be brief.")
    tab.get_by_label("Max tokens").fill("32")
    say(tab, "first")
    answered(tab, "one")
    other = tab.get_by_label("Deployment", exact=True).locator("option:not([selected])").first
    tab.get_by_label("Deployment", exact=True).select_option(other.get_attribute("value"))
    tab.wait_for_url("**deployment=**")
    assert messages(tab) == ["first", "one"]
    gateway.will_say("two")
    say(tab, "second")
    answered(tab, "two")
    assert gateway.asked[-1]["max_tokens"] == 32
    assert gateway.asked[-1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "second"},
    ]


def test_the_last_answer_is_tried_again_in_its_place(tab: Tab, gateway: Gateway) -> None:
    gateway.will_say("one")
    gateway.will_say("another")
    say(tab, "hello")
    answered(tab, "one")
    tab.get_by_role("button", name="Retry").click()
    answered(tab, "another")
    assert messages(tab) == ["hello", "another"]
    assert gateway.asked[0]["messages"] == gateway.asked[1]["messages"]


def test_the_last_question_comes_back_to_be_edited(tab: Tab, gateway: Gateway) -> None:
    gateway.will_say("one")
    say(tab, "helo")
    answered(tab, "one")
    tab.get_by_role("button", name="Edit").click()
    expect(tab.get_by_label("Message")).to_have_value("helo")
    expect(tab.get_by_label("Message")).to_be_focused()
    assert messages(tab) == []


def test_an_answer_is_stopped_with_escape(tab: Tab, gateway: Gateway) -> None:
    say(tab, "a long story")
    expect(tab.get_by_role("button", name="Stop")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("#conversation")).to_contain_text("stopped")
    expect(tab.get_by_role("button", name="Send")).to_be_visible()


def test_starting_over_while_an_answer_is_on_its_way_leaves_nothing(
    tab: Tab, gateway: Gateway
) -> None:
    say(tab, "a long story")
    tab.get_by_role("button", name="Clear conversation").click()
    expect(tab.locator("#conversation .nf-bubble")).to_have_count(0)
    expect(tab.get_by_role("button", name="Send")).to_be_visible()
    tab.reload()
    expect(tab.locator("#conversation .nf-bubble")).to_have_count(0)


def test_a_refusal_says_what_to_do_next_and_can_be_tried_again(tab: Tab, gateway: Gateway) -> None:
    gateway.will_refuse(429, "too many requests", **{"Retry-After": "7"})
    say(tab, "hello")
    error = tab.locator('[data-role="error"]')
    expect(error).to_contain_text("too many requests")
    expect(error).to_contain_text("Try again in 7 s.")
    gateway.will_say("here I am")
    tab.get_by_role("button", name="Retry").click()
    answered(tab, "here I am")
    expect(error).to_have_count(0)


def test_a_question_after_a_failure_is_asked_together_with_the_one_before(
    tab: Tab, gateway: Gateway
) -> None:
    gateway.will_refuse(503, "no replica")
    say(tab, "hello")
    expect(tab.locator('[data-role="error"]')).to_be_visible()
    gateway.will_say("yes")
    say(tab, "are you there?")
    answered(tab, "yes")
    assert gateway.asked[-1]["messages"] == [{"role": "user", "content": "hello\n\nare you there?"}]


def test_what_was_written_before_an_answer_broke_off_is_kept(tab: Tab, gateway: Gateway) -> None:
    gateway.will_break_off("Old ", "Mill")
    say(tab, "Where?")
    expect(tab.locator('[data-role="error"]')).to_contain_text("interrupted")
    assert messages(tab)[1] == "Old Mill"


def test_an_answer_that_reached_the_most_tokens_says_so(tab: Tab, gateway: Gateway) -> None:
    gateway.will_say("Old", reason="length")
    say(tab, "Where?")
    expect(tab.locator("[data-figures]").last).to_contain_text("truncated at max tokens")


def test_markup_in_an_answer_is_text(tab: Tab, gateway: Gateway) -> None:
    gateway.will_say("<img src=x onerror=alert(1)>")
    say(tab, "hello")
    answered(tab, "<img src=x onerror=alert(1)>")
    assert tab.locator("#conversation img").count() == 0


def test_the_examples_are_the_call_that_would_be_made(tab: Tab, gateway: Gateway) -> None:
    tab.get_by_label("Message").fill('It\'s $HOME \\ "here"\n你好')
    tab.get_by_label("Temperature").fill("0.7")
    shown = tab.locator("[data-example=curl]").inner_text()
    quoted = shown.partition("  -d '")[2].removesuffix("'").replace("'\\''", "'")
    gateway.will_say("ok")
    tab.get_by_role("button", name="Send").click()
    answered(tab, "ok")
    asked = json.loads(quoted)
    assert asked.pop("stream") is True
    assert asked.pop("stream_options") == {"include_usage": True}
    assert asked == gateway.asked[0]
    program = tab.locator("[data-example=python]").inner_text()
    compile(program, "example", "exec")
    assert '"content": "It\'s $HOME \\\\ \\"here\\"\\n你好"' in program
    assert "temperature=0.7" in program


def test_a_wrong_setting_is_told_before_anything_is_sent(tab: Tab, gateway: Gateway) -> None:
    tab.get_by_label("Temperature").fill("9")
    say(tab, "hello")
    expect(tab.get_by_label("Temperature")).to_be_focused()
    assert gateway.asked == []
    expect(tab.get_by_label("Message")).to_have_value("hello")


def test_a_line_break_is_not_the_end_of_a_message(tab: Tab, gateway: Gateway) -> None:
    tab.get_by_label("Message").fill("one")
    tab.get_by_label("Message").press("Shift+Enter")
    expect(tab.get_by_label("Message")).to_have_value("one\n")
    assert gateway.asked == []


def test_on_a_phone_the_composer_stays_in_sight(tab: Tab, gateway: Gateway) -> None:
    tab.set_viewport_size({"width": 390, "height": 780})
    gateway.will_say(*["a line of a long answer\n"] * 60)
    say(tab, "a story")
    expect(tab.locator("[data-figures]").last).to_be_visible()
    expect(tab.get_by_label("Message")).to_be_in_viewport()
    expect(tab.get_by_role("button", name="Send")).to_be_in_viewport()
