r"""Messages to receivers in the formats of chat services, with their signatures.

Texts are rendered by the caller. Each chat service has limits of its own and interprets some characters as
markup, so foreign names are escaped.

- Feishu/Lark, custom bot: an interactive card; ``sign`` is the HMAC-SHA256 of an empty message with the key
  ``timestamp\nsecret`` (seconds), in Base64, in the body. The response is 200 also for a refusal: ``code`` is 0
  only on success.
- DingTalk, custom robot: Markdown; ``sign`` is the HMAC-SHA256 of ``timestamp\nsecret`` (milliseconds) with the
  secret as key, in Base64, in the URL. ``errcode`` as Feishu's ``code``.
- Slack, incoming webhook: blocks; the URL itself is the secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from controlplane.domain.common.reasons import Reason

#: Slack refuses longer ones; the others are cut alike, for a chat is no list.
LONGEST_TITLE, LONGEST_TEXT, MOST_LINES = 150, 2800, 12


class ReceiverKind(StrEnum):
    WEBHOOK = "webhook"
    EMAIL = "email"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"
    SLACK = "slack"


class MessageSeverity(StrEnum):
    BAD = "bad"
    WARNING = "warning"
    INFO = "info"
    GOOD = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverMessage:
    """What happened, in the receiver's language."""

    title: str
    #: What it is about, line by line.
    lines: tuple[str, ...]
    tone: MessageSeverity
    #: A page with details, and the text of the link.
    link: str
    link_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverPost:
    """A POST request."""

    url: str
    body: bytes


def chat_post(
    kind: ReceiverKind, message: ReceiverMessage, *, url: str, secret: bytes, timestamp: int
) -> ReceiverPost:
    """The request to a chat service; ``timestamp`` in seconds; without a secret nothing is signed."""
    if kind is ReceiverKind.FEISHU:
        return feishu_post(message, url=url, secret=secret, timestamp=timestamp)
    if kind is ReceiverKind.DINGTALK:
        return dingtalk_post(message, url=url, secret=secret, timestamp=timestamp)
    return slack_post(message, url=url)


def feishu_post(
    message: ReceiverMessage, *, url: str, secret: bytes, timestamp: int
) -> ReceiverPost:
    """``timestamp`` in seconds; without a secret nothing is signed."""
    colours = {
        MessageSeverity.BAD: "red",
        MessageSeverity.WARNING: "orange",
        MessageSeverity.INFO: "blue",
        MessageSeverity.GOOD: "green",
    }
    content: dict[str, Any] = {
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": True},
            "header": {
                "title": {
                    "tag": "plain_text",
                    "content": _truncate_text(message.title, LONGEST_TITLE),
                },
                "template": colours[message.tone],
            },
            "elements": [
                {"tag": "div", "text": {"tag": "plain_text", "content": _message_text(message)}},
                {
                    "tag": "action",
                    "actions": [
                        {
                            "tag": "button",
                            "text": {"tag": "plain_text", "content": message.link_text},
                            "type": "primary",
                            "url": message.link,
                        }
                    ],
                },
            ],
        },
    }
    if secret:
        key = str(timestamp).encode() + b"\n" + secret
        content = {"timestamp": str(timestamp), "sign": _sign_base64(key, b""), **content}
    return ReceiverPost(url=url, body=_encode_json(content))


_DINGTALK_MARKUP = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_#[]<>!|~"})


def dingtalk_post(
    message: ReceiverMessage, *, url: str, secret: bytes, timestamp: int
) -> ReceiverPost:
    """``timestamp`` in seconds; without a secret nothing is signed."""
    title = _truncate_text(message.title, LONGEST_TITLE)
    lines = [line.translate(_DINGTALK_MARKUP) for line in _message_text(message).split("\n")]
    text = "\n\n".join(
        [
            f"### {title.translate(_DINGTALK_MARKUP)}",
            *lines,
            f"[{message.link_text}]({message.link})",
        ]
    )
    content = {"msgtype": "markdown", "markdown": {"title": title, "text": text}}
    if secret:
        milliseconds = str(timestamp * 1000)
        sign = _sign_base64(secret, milliseconds.encode() + b"\n" + secret)
        url = _with_query(url, {"timestamp": milliseconds, "sign": sign})
    return ReceiverPost(url=url, body=_encode_json(content))


def slack_post(message: ReceiverMessage, *, url: str) -> ReceiverPost:
    marks = {
        MessageSeverity.BAD: ":red_circle:",
        MessageSeverity.WARNING: ":large_orange_circle:",
        MessageSeverity.INFO: ":large_blue_circle:",
        MessageSeverity.GOOD: ":large_green_circle:",
    }
    title = _truncate_text(f"{marks[message.tone]} {message.title}", LONGEST_TITLE)
    content = {
        # Text of push notifications, which do not support blocks.
        "text": _escape_slack_text(message.title),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": True}},
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": _truncate_text(
                        _escape_slack_text(_message_text(message)) or "–", LONGEST_TEXT
                    ),
                },
            },
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "button",
                        "text": {"type": "plain_text", "text": message.link_text},
                        "url": message.link,
                    }
                ],
            },
        ],
    }
    return ReceiverPost(url=url, body=_encode_json(content))


#: Member of the response that says whether the message was accepted.
_CODES: Mapping[ReceiverKind, tuple[str, str]] = {
    ReceiverKind.FEISHU: ("code", "msg"),
    ReceiverKind.DINGTALK: ("errcode", "errmsg"),
}


def response_error(kind: ReceiverKind, answer: str) -> str:
    """Why a chat service that responded with a success status rejected the message; empty if it did not."""
    if kind not in _CODES:
        return ""
    code_name, message_name = _CODES[kind]
    try:
        content = json.loads(answer)
    except ValueError:
        return Reason(
            "notification.response.not_json",
            "the response is not JSON, which this type of chat always returns; check the URL",
        )
    if not isinstance(content, dict) or code_name not in content:
        return Reason(
            "notification.response.field_missing",
            "the response has no {field}, which this type of chat always returns; check the URL",
            field=code_name,
        )
    if content[code_name] == 0:
        return ""
    return Reason(
        "notification.response.error_code",
        "the receiver refused the message with {error_code}: {error_message}",
        error_code=content[code_name],
        error_message=str(content.get(message_name, ""))[:200],
    )


def _message_text(message: ReceiverMessage) -> str:
    shown = [" ".join(line.split()) for line in message.lines[:MOST_LINES]]
    return _truncate_text("\n".join(shown), LONGEST_TEXT)


def _escape_slack_text(text: str) -> str:
    """Slack interprets angle brackets as links and mentions."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _truncate_text(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _sign_base64(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = [*parse_qsl(parts.query, keep_blank_values=True), *more.items()]
    return urlunsplit(parts._replace(query=urlencode(query)))


def _encode_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
