"""Rate limits of a key: requests per minute, tokens per minute, concurrent requests.

The limits of a key apply to all gateways together. They are divided evenly among the live
gateways, which needs no communication between them; the result can deviate in both directions. A client
whose connections all reach one gateway of *n* gets 1/*n* of its limit. Where a limit is smaller than *n*,
each gateway still allows one, so up to *n* pass.

Both rates are token buckets with a capacity of one minute that refill evenly: after an idle minute a
client may use the whole capacity at once. A request's tokens are known only when it has ended.
Until then it is charged an estimate of its prompt, and its output as it is streamed, so that concurrent
requests count against each other. The level may become negative, by the one request that
found it positive and by usage beyond the estimates; the next request is refused until the level is
positive again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from controlplane.domain.common.reasons import Parameter, Reason, fill_message
from gateway.errors import ApiError, ErrorType
from gateway.snapshots import SnapshotKey

_MINUTE = 60.0

#: ``Retry-After`` at the concurrency limit, because the end of a request is not predictable.
_CONCURRENCY_RETRY_SECONDS = 1.0


class TokenBucket:
    """A token bucket. Instants are seconds of a monotonic clock."""

    __slots__ = ("_at", "capacity", "level", "per_second")

    def __init__(self, *, per_minute: float, at: float) -> None:
        self.capacity = _bucket_capacity(per_minute)
        self.per_second = per_minute / _MINUTE
        self.level = self.capacity
        self._at = at

    def resize(self, *, per_minute: float, at: float) -> None:
        """Change the rate; what has been used stays used."""
        self.fill(at=at)
        used = self.capacity - self.level
        self.capacity = _bucket_capacity(per_minute)
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


def _bucket_capacity(per_minute: float) -> float:
    # A capacity below one request would never admit any; that is only meant by a limit of 0.
    return max(1.0, per_minute) if per_minute else 0.0


class _KeyUsage:
    """The current usage of one key."""

    __slots__ = ("concurrency", "gateways", "key", "open_requests", "requests", "tokens")

    def __init__(self) -> None:
        self.key: SnapshotKey | None = None
        self.gateways = 0
        self.open_requests = 0
        self.concurrency: int | None = None
        self.requests: TokenBucket | None = None
        self.tokens: TokenBucket | None = None

    def apply(self, key: SnapshotKey, *, gateways: int, at: float) -> None:
        self.key = key
        self.gateways = gateways
        self.concurrency = (
            None if key.concurrency is None else _concurrency_share(key.concurrency, gateways)
        )
        self.requests = _resize_bucket(self.requests, key.requests_per_minute, gateways, at=at)
        self.tokens = _resize_bucket(self.tokens, key.tokens_per_minute, gateways, at=at)


def _concurrency_share(concurrency: int, gateways: int) -> int:
    return math.ceil(concurrency / gateways)


def _resize_bucket(
    bucket: TokenBucket | None, limit: int | None, gateways: int, *, at: float
) -> TokenBucket | None:
    if limit is None:
        return None
    per_minute = limit / gateways
    if bucket is None:
        return TokenBucket(per_minute=per_minute, at=at)
    bucket.resize(per_minute=per_minute, at=at)
    return bucket


class RequestCharge:
    """What one open request has been charged so far."""

    __slots__ = ("_account", "_bucket", "_monotonic", "_open", "tokens")

    def __init__(self, account: _KeyUsage, *, tokens: int, monotonic: Callable[[], float]) -> None:
        self._account = account
        self._bucket = account.tokens
        self._monotonic = monotonic
        self._open = True
        self.tokens = tokens
        if self._bucket is not None:
            self._bucket.level -= tokens

    def change(self, tokens: int) -> None:
        """Set the total charge of the request; an overcharge is refunded."""
        bucket = self._account.tokens
        if bucket is not None:
            bucket.fill(at=self._monotonic())
            # A limit that was added to the key meanwhile has not been charged yet.
            charged = self.tokens if bucket is self._bucket else 0
            bucket.level = min(bucket.capacity, bucket.level - (tokens - charged))
        self._bucket, self.tokens = bucket, tokens

    def settle(self, tokens: int) -> None:
        """End the request with its final number of tokens. Later calls do nothing."""
        if self._open:
            self._open = False
            self._account.open_requests -= 1
            self.change(tokens)


class RateLimiter:
    """The usage of every key that has made requests."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._accounts: dict[str, _KeyUsage] = {}

    def retain(self, keys: Iterable[SnapshotKey]) -> None:
        """Drop the usage of idle keys that are not among these."""
        known = {key.uid for key in keys}
        self._accounts = {
            uid: account
            for uid, account in self._accounts.items()
            if uid in known or account.open_requests
        }

    def admit(self, key: SnapshotKey, *, gateways: int, tokens: int | None) -> RequestCharge:
        """Admit one request and charge it an estimate; :meth:`RequestCharge.settle` must follow.

        :param tokens: None if the request uses none, so that the limit of tokens does not concern it.
        :raises ApiError: 429 if one of the key's limits is reached; nothing is used up then.
        """
        account = self._accounts.get(key.uid)
        if account is None:
            account = self._accounts[key.uid] = _KeyUsage()
        now = self._monotonic()
        if account.key is not key or account.gateways != gateways:
            account.apply(key, gateways=gateways, at=now)
        self._check_limits(account, uses_tokens=tokens is not None, at=now)
        if account.requests is not None:
            account.requests.level -= 1.0
        account.open_requests += 1
        return RequestCharge(account, tokens=tokens or 0, monotonic=self._monotonic)

    def _check_limits(self, account: _KeyUsage, *, uses_tokens: bool, at: float) -> None:
        if account.concurrency is not None and account.open_requests >= account.concurrency:
            raise self._limit_exceeded_error(
                account,
                "gateway.concurrency.exceeded",
                "the concurrent requests of this key on this gateway are limited to "
                "{limit}, and {open_requests} are open",
                limit=account.concurrency,
                open_requests=account.open_requests,
                kind=ErrorType.REQUESTS,
                retry_after_seconds=_CONCURRENCY_RETRY_SECONDS,
            )
        if account.requests is not None:
            account.requests.fill(at=at)
            if account.requests.level < 1.0:
                raise self._limit_exceeded_error(
                    account,
                    "gateway.request_rate.exceeded",
                    "the requests per minute of this key on this gateway are limited to {limit}",
                    limit=f"{account.requests.capacity:g}",
                    kind=ErrorType.REQUESTS,
                    retry_after_seconds=account.requests.seconds_until(1.0),
                )
        if account.tokens is not None and uses_tokens:
            account.tokens.fill(at=at)
            if account.tokens.level < 1.0:
                raise self._limit_exceeded_error(
                    account,
                    "gateway.token_rate.exceeded",
                    "the tokens per minute of this key on this gateway are limited to {limit}",
                    limit=f"{account.tokens.capacity:g}",
                    kind=ErrorType.TOKENS,
                    retry_after_seconds=account.tokens.seconds_until(1.0),
                )

    def _limit_exceeded_error(
        self,
        account: _KeyUsage,
        code: str,
        template: str,
        /,
        *,
        kind: ErrorType,
        retry_after_seconds: float,
        **params: Parameter,
    ) -> ApiError:
        return ApiError(
            Reason(
                "gateway.rate_limit.reached",
                "Rate limit reached: {reason}. Try again in {seconds} s.",
                reason=fill_message(code, template, **params),
                seconds=f"{retry_after_seconds:.1f}",
            ),
            status=429,
            kind=kind,
            code="rate_limit_exceeded",
            headers=_rate_limit_headers(account),
            retry_after_seconds=retry_after_seconds,
        )

    def headers(self, key: SnapshotKey) -> dict[str, str]:
        """OpenAI's ``x-ratelimit-*`` for the key's rates; empty where it has none."""
        return _rate_limit_headers(self._accounts[key.uid])


def _rate_limit_headers(account: _KeyUsage) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, bucket in (("requests", account.requests), ("tokens", account.tokens)):
        if bucket is not None:
            headers[f"x-ratelimit-limit-{name}"] = f"{bucket.capacity:.0f}"
            headers[f"x-ratelimit-remaining-{name}"] = str(max(0, int(bucket.level)))
            headers[f"x-ratelimit-reset-{name}"] = f"{bucket.seconds_until(bucket.capacity):.3f}s"
    return headers
