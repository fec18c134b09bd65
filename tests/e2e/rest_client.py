"""A small REST client, as a user's script would have it: standard library only."""

from __future__ import annotations

import http.cookiejar
import json
import re
import secrets
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any


class Refused(Exception):
    """The product answered with an error."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class RestClient:
    """Talks to ``/api/v1`` as somebody who signed in with a name and a password."""

    def __init__(self, base: str, *, username: str, password: str) -> None:
        self._base = base.rstrip("/")
        token = self._sign_in(username, password)
        self._headers = {"Authorization": f"Bearer {token}"}

    def _sign_in(self, username: str, password: str) -> str:
        """Through the log-in page, then a personal token."""
        cookies = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
        page = opener.open(f"{self._base}/login").read().decode()
        found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        if found is None:
            raise Refused(200, "the log-in page has no form")
        form = {
            "username": username,
            "password": password,
            "csrfmiddlewaretoken": found.group(1),
        }
        opener.open(f"{self._base}/login", urllib.parse.urlencode(form).encode())
        csrf = next(cookie.value or "" for cookie in cookies if cookie.name == "csrftoken")
        request = urllib.request.Request(
            f"{self._base}/api/v1/tokens",
            data=json.dumps({"name": f"script {secrets.token_hex(4)}", "scopes": ["all"]}).encode(),
            headers={
                "Content-Type": "application/json",
                "X-CSRFToken": csrf,
                "Referer": self._base,
            },
        )
        token: str = json.load(opener.open(request))["text"]
        return token

    def get(self, path: str, **query: str | int) -> Any:
        suffix = f"?{urllib.parse.urlencode(query)}" if query else ""
        return self._json("GET", f"{path}{suffix}")

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._json("POST", path, body if body is not None else {})

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        return self._json("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._json("DELETE", path)

    def text(self, path: str, **query: str | int) -> str:
        suffix = f"?{urllib.parse.urlencode(query)}" if query else ""
        content = self._send("GET", f"{path}{suffix}", None, {"Accept": "text/plain"})
        return content.decode(errors="replace")

    def upload(self, path: str, *, file: Path, **fields: str) -> Any:
        """A multipart form with one file."""
        boundary = secrets.token_hex(16)
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
            f'filename="{file.name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        )
        body = "".join(parts).encode() + file.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        content_type = f"multipart/form-data; boundary={boundary}"
        return json.loads(self._send("POST", path, body, {"Content-Type": content_type}))

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        content = self._send(method, path, data, {"Content-Type": "application/json"})
        return json.loads(content) if content else None

    def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> bytes:
        request = urllib.request.Request(
            f"{self._base}/api/v1/{path}",
            data=data,
            method=method,
            headers={**self._headers, **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                content: bytes = response.read()
                return content
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None
