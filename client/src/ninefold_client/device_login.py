"""Sign-in by a code that a user approves in a browser (RFC 8628)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from ninefold_client.errors import ApiError, ConnectionFailed, NinefoldError

CLIENT_ID = "ninefold-cli"
_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT = 30.0
#: Seconds by which ``slow_down`` raises the interval, where the server does not say it.
_SLOWER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """A sign-in that waits for approval."""

    device_code: str = field(repr=False)
    #: What the user compares with the page.
    user_code: str
    #: Address of the page, with the code in it.
    page: str
    expires_in: int
    interval: float


def request_device_code(url: str, *, scopes: list[str]) -> DeviceCode:
    """Ask the server for a code.

    :raises ApiError: if the server refuses.
    :raises ConnectionFailed: if it cannot be reached.
    """
    fields = {"client_id": CLIENT_ID, "scope": " ".join(scopes), "host": socket.gethostname()}
    response = _post(f"{url}/oauth/device_authorization", fields)
    answer = _json(response)
    if response.is_error or "device_code" not in answer:
        raise _error(response, answer)
    return DeviceCode(
        device_code=str(answer["device_code"]),
        user_code=str(answer["user_code"]),
        page=str(answer.get("verification_uri_complete") or answer["verification_uri"]),
        expires_in=int(answer["expires_in"]),
        interval=float(answer.get("interval") or _SLOWER),
    )


def await_device_token(
    url: str,
    code: DeviceCode,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Return the token after a user has approved the code.

    :raises NinefoldError: if the user denies it, or nobody approves it in time.
    :raises ApiError: if the server refuses for another reason.
    """
    interval, until = code.interval, clock() + code.expires_in
    while clock() < until:
        sleep(interval)
        try:
            response = _post(
                f"{url}/oauth/token",
                {
                    "grant_type": _GRANT_TYPE,
                    "client_id": CLIENT_ID,
                    "device_code": code.device_code,
                },
            )
        except ConnectionFailed:
            # The RFC asks for fewer requests then (section 3.5).
            interval *= 2
            continue
        answer = _json(response)
        match answer.get("error"):
            case None if response.is_success and "access_token" in answer:
                return str(answer["access_token"])
            case "authorization_pending":
                continue
            case "slow_down":
                interval = max(float(answer.get("interval") or 0), interval + _SLOWER)
            case "access_denied":
                raise NinefoldError(f"the sign-in with the code {code.user_code} was denied")
            case "expired_token":
                break
            case _:
                raise _error(response, answer)
    raise NinefoldError(
        f"nobody approved the code {code.user_code} within {code.expires_in // 60} minutes. "
        "Run: ninefold login"
    )


def _post(url: str, fields: Mapping[str, str]) -> httpx.Response:
    try:
        return httpx.post(
            url, data=dict(fields), timeout=_TIMEOUT, headers={"Accept": "application/json"}
        )
    except httpx.TransportError as error:
        raise ConnectionFailed(
            f"{url} cannot be reached ({error}); check the address and that the server is running"
        ) from error


def _json(response: httpx.Response) -> Mapping[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}


def _error(response: httpx.Response, answer: Mapping[str, Any]) -> ApiError:
    return ApiError(
        status=response.status_code,
        code=str(answer.get("error") or "unexpected-response"),
        message=str(
            answer.get("error_description")
            or f"{response.request.url} returned status {response.status_code}; check that the address is the one "
            "of Ninefold"
        ),
    )
