"""Chats get the forms that their documentation shows, and cannot be tricked into markup."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from controlplane.domain.alerts.chat_messages import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    MessageSeverity,
    ReceiverKind,
    ReceiverMessage,
    ReceiverPost,
    dingtalk_post,
    feishu_post,
    response_error,
    slack_post,
)

AT = 1_764_000_000
HOT = ReceiverMessage(
    title="Cards are too hot: 2 alerts",
    lines=("cluster=west", "node=a_1 card=3: 96 °C"),
    tone=MessageSeverity.WARNING,
    link="https://ninefold.example.com/fleet/alerts/1",
    link_text="Open the alert",
)


def content(call: ReceiverPost) -> Any:
    return json.loads(call.body)


def test_feishu_gets_a_signed_card() -> None:
    call = feishu_post(HOT, url="https://chat.example.com/hook/1", secret=b"secret", timestamp=AT)
    assert call.url == "https://chat.example.com/hook/1"
    assert content(call) == {
        "timestamp": "1764000000",
        "sign": "pkaPagedU09XdqI1xfOX926zONBbOkVjLse1uvTDNhM=",
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": True},
            "header": {
                "title": {"tag": "plain_text", "content": "Cards are too hot: 2 alerts"},
                "template": "orange",
            },
            "elements": [
                {
                    "tag": "div",
                    "text": {
                        "tag": "plain_text",
                        "content": "cluster=west\nnode=a_1 card=3: 96 °C",
                    },
                },
                {
                    "tag": "action",
                    "actions": [
                        {
                            "tag": "button",
                            "text": {"tag": "plain_text", "content": "Open the alert"},
                            "type": "primary",
                            "url": "https://ninefold.example.com/fleet/alerts/1",
                        }
                    ],
                },
            ],
        },
    }


def test_dingtalk_gets_markdown_with_its_signature_in_the_address() -> None:
    url = "https://chat.example.com/robot/send?access_token=t"
    call = dingtalk_post(HOT, url=url, secret=b"secret", timestamp=AT)
    assert parse_qs(urlsplit(call.url).query) == {
        "access_token": ["t"],
        "timestamp": ["1764000000000"],
        "sign": ["lRkH2G8AsZMinQSw4N9E7OjfwStZY6tS7PtKnoPz6+k="],
    }
    assert content(call) == {
        "msgtype": "markdown",
        "markdown": {
            "title": "Cards are too hot: 2 alerts",
            "text": "### Cards are too hot: 2 alerts\n\ncluster=west\n\n"
            "node=a\\_1 card=3: 96 °C\n\n"
            "[Open the alert](https://ninefold.example.com/fleet/alerts/1)",
        },
    }


def test_slack_gets_blocks_and_a_text_for_notifications() -> None:
    call = slack_post(HOT, url="https://chat.example.com/services/1")
    assert content(call) == {
        "text": "Cards are too hot: 2 alerts",
        "blocks": [
            {
                "type": "header",
                "text": {
                    "type": "plain_text",
                    "text": ":large_orange_circle: Cards are too hot: 2 alerts",
                    "emoji": True,
                },
            },
            {
                "type": "section",
                "text": {"type": "mrkdwn", "text": "cluster=west\nnode=a_1 card=3: 96 °C"},
            },
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "button",
                        "text": {"type": "plain_text", "text": "Open the alert"},
                        "url": "https://ninefold.example.com/fleet/alerts/1",
                    }
                ],
            },
        ],
    }


def test_without_a_secret_nothing_is_signed() -> None:
    assert "sign" not in content(feishu_post(HOT, url="https://a", secret=b"", timestamp=AT))
    assert (
        dingtalk_post(HOT, url="https://a/b?c=d", secret=b"", timestamp=AT).url == "https://a/b?c=d"
    )


def test_a_name_from_outside_calls_nobody_and_stays_within_the_bounds() -> None:
    evil = ReceiverMessage(
        title="<!channel>" + "x" * 500,
        lines=("<!everyone> & [a](b)\n# big", *("y" * 1000 for _ in range(30))),
        tone=MessageSeverity.BAD,
        link="https://ninefold.example.com",
        link_text="Open",
    )
    chat = content(slack_post(evil, url="https://a"))
    assert len(chat["blocks"][0]["text"]["text"]) <= LONGEST_TITLE
    section = chat["blocks"][1]["text"]["text"]
    assert len(section) <= LONGEST_TEXT
    assert section.startswith("&lt;!everyone&gt; &amp; [a](b) # big\n")
    assert chat["text"].startswith("&lt;!channel&gt;")
    markdown = content(dingtalk_post(evil, url="https://a", secret=b"", timestamp=AT))["markdown"]
    assert "\\<\\!everyone\\> & \\[a\\](b) \\# big" in markdown["text"]


@pytest.mark.parametrize(
    ("kind", "answer", "says"),
    [
        (ReceiverKind.FEISHU, '{"code":0,"msg":"success"}', ""),
        (ReceiverKind.FEISHU, '{"code":19021,"msg":"sign match fail"}', "19021: sign match fail"),
        (ReceiverKind.FEISHU, "<html>", "the response is not JSON"),
        (ReceiverKind.DINGTALK, '{"errcode":0,"errmsg":"ok"}', ""),
        (ReceiverKind.DINGTALK, '{"errcode":310000,"errmsg":"keywords"}', "310000: keywords"),
        (ReceiverKind.DINGTALK, "[]", "has no errcode"),
        (ReceiverKind.SLACK, "ok", ""),
        (ReceiverKind.WEBHOOK, "", ""),
    ],
)
def test_a_chat_that_answers_well_may_still_refuse(
    kind: ReceiverKind, answer: str, says: str
) -> None:
    found = response_error(kind, answer)
    assert says in found
    assert bool(found) is bool(says)
