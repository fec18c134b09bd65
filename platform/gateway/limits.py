"""What a key may use: requests a minute, tokens a minute, requests at a time.

The limits of a key hold over all gateways together. They are divided evenly among the live
gateways, which needs no talk between them; the price is an error in both directions. A client whose
connections all reach one gateway of *n* gets 1/*n* of its limit. Where a limit is smaller than *n*,
every gateway still grants one, so up to *n* pass.

Both rates are token buckets that hold one minute's worth and fill evenly: after a quiet minute a
client may use a whole minute's worth at once. A request's tokens are known only when it has ended.
Until then it is charged an estimate of its prompt, and what it streams as it streams, so that requests
at the same time count against each other. The level may fall below zero, by the one request that
found it positive and by what requests use beyond their estimates; the next request waits until the
debt is paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from gateway.errors import ApiError, ErrorType
from gateway.snapshots import Key

_MINUTE = 60.0

#: A request that ends frees a place at an unknown time; clients are asked to come back this soon.
_CONCURRENCY_RETRY_SECONDS = 1.0


class Bucket:
    """A level that fills evenly up to its capacity. Instants are seconds of a monotonic clock."""

    __slots__ = ("_at", "capacity", "level", "per_second")

    def __init__(self, *, per_minute: float, at: float) -> None:
        self.capacity = _capacity(per_minute)
        self.per_second = per_minute / _MINUTE
        self.level = self.capacity
        self._at = at

    def resize(self, *, per_minute: float, at: float) -> None:
        """Go on under another rate; what has been used stays used."""
        self.fill(at=at)
        used = self.capacity - self.level
        self.capacity = _capacity(per_minute)
        self.per_second = per_minute / _MINUTE
        self.level = self.capacity - used

    def fill(self, *, at: float) -> None:
        self.level = min(self.capacity, self.level + (at - self._at) * self.per_second)
        self._at = at

    def seconds_until(self, level: float) -> float:
        """Seconds from the last filling until the level is reached; 0 if it is already."""
        if self.level >= level:
            return 0.0
        return (level - self.level) / self.per_second if self.per_second > 0 else _MINUTE


def _capacity(per_minute: float) -> float:
    # A share below one request could never admit any; a limit of 0 means just that.
    return max(1.0, per_minute) if per_minute else 0.0


class _Account:
    """The state of one key."""

    __slots__ = ("gateways", "key", "places", "requests", "running", "tokens")

    def __init__(self) -> None:
        self.key: Key | None = None
        self.gateways = 0
        self.running = 0
        self.places: int | None = None
        self.requests: Bucket | None = None
        self.tokens: Bucket | None = None

    def apply(self, key: Key, *, gateways: int, at: float) -> None:
        self.key = key
        self.gateways = gateways
        self.places = (
            None if key.concurrency is None else _share_of_places(key.concurrency, gateways)
        )
        self.requests = _resized(self.requests, key.requests_per_minute, gateways, at=at)
        self.tokens = _resized(self.tokens, key.tokens_per_minute, gateways, at=at)


def _share_of_places(concurrency: int, gateways: int) -> int:
    return math.ceil(concurrency / gateways)


def _resized(
    bucket: Bucket | None, limit: int | None, gateways: int, *, at: float
) -> Bucket | None:
    if limit is None:
        return None
    per_minute = limit / gateways
    if bucket is None:
        return Bucket(per_minute=per_minute, at=at)
    bucket.resize(per_minute=per_minute, at=at)
    return bucket


class Charge:
    """What one open request has been charged so far."""

    __slots__ = ("_account", "_bucket", "_monotonic", "_open", "tokens")

    def __init__(self, account: _Account, *, tokens: int, monotonic: Callable[[], float]) -> None:
        self._account = account
        self._bucket = account.tokens
        self._monotonic = monotonic
        self._open = True
        self.tokens = tokens
        if self._bucket is not None:
            self._bucket.level -= tokens

    def change(self, tokens: int) -> None:
        """Charge this many tokens in all from now on; what was charged too much is given back."""
        bucket = self._account.tokens
        if bucket is not None:
            bucket.fill(at=self._monotonic())
            # A limit that the key was given meanwhile has not been charged anything yet.
            charged = self.tokens if bucket is self._bucket else 0
            bucket.level = min(bucket.capacity, bucket.level - (tokens - charged))
        self._bucket, self.tokens = bucket, tokens

    def settle(self, tokens: int) -> None:
        """The request has ended and has used that many tokens. Later calls do nothing."""
        if self._open:
            self._open = False
            self._account.running -= 1
            self.change(tokens)


class Limits:
    """The accounts of every key that called."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._accounts: dict[str, _Account] = {}

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget idle accounts of keys that are not among these."""
        known = {key.uid for key in keys}
        self._accounts = {
            uid: account
            for uid, account in self._accounts.items()
            if uid in known or account.running
        }

    def admit(self, key: Key, *, gateways: int, tokens: int) -> Charge:
        """Let one request in and charge it an estimate; :meth:`Charge.settle` must follow.

        :raises ApiError: 429 if one of the key's limits is reached; nothing is used up then.
        """
        account = self._accounts.get(key.uid)
        if account is None:
            account = self._accounts[key.uid] = _Account()
        now = self._monotonic()
        if account.key is not key or account.gateways != gateways:
            account.apply(key, gateways=gateways, at=now)
        self._check(account, at=now)
        if account.requests is not None:
            account.requests.level -= 1.0
        account.running += 1
        return Charge(account, tokens=tokens, monotonic=self._monotonic)

    def _check(self, account: _Account, *, at: float) -> None:
        if account.places is not None and account.running >= account.places:
            raise self._exceeded(
                account,
                f"this key may have {account.places} requests open at a time here "
                f"and has {account.running}",
                kind=ErrorType.REQUESTS,
                retry_after_seconds=_CONCURRENCY_RETRY_SECONDS,
            )
        if account.requests is not None:
            account.requests.fill(at=at)
            if account.requests.level < 1.0:
                raise self._exceeded(
                    account,
                    f"this key may make {account.requests.capacity:g} requests a minute here",
                    kind=ErrorType.REQUESTS,
                    retry_after_seconds=account.requests.seconds_until(1.0),
                )
        if account.tokens is not None:
            account.tokens.fill(at=at)
            if account.tokens.level < 1.0:
                raise self._exceeded(
                    account,
                    f"this key may use {account.tokens.capacity:g} tokens a minute here",
                    kind=ErrorType.TOKENS,
                    retry_after_seconds=account.tokens.seconds_until(1.0),
                )

    def _exceeded(
        self, account: _Account, reason: str, *, kind: ErrorType, retry_after_seconds: float
    ) -> ApiError:
        return ApiError(
            f"Rate limit reached: {reason}. Try again in {retry_after_seconds:.1f} s.",
            status=429,
            kind=kind,
            code="rate_limit_exceeded",
            headers=_headers(account),
            retry_after_seconds=retry_after_seconds,
        )

    def headers(self, key: Key) -> dict[str, str]:
        """OpenAI's ``x-ratelimit-*`` for the key's rates; empty where it has none."""
        return _headers(self._accounts[key.uid])


def _headers(account: _Account) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, bucket in (("requests", account.requests), ("tokens", account.tokens)):
        if bucket is not None:
            headers[f"x-ratelimit-limit-{name}"] = f"{bucket.capacity:.0f}"
            headers[f"x-ratelimit-remaining-{name}"] = str(max(0, int(bucket.level)))
            headers[f"x-ratelimit-reset-{name}"] = f"{bucket.seconds_until(bucket.capacity):.3f}s"
    return headers
