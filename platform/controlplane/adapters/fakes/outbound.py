"""Calls that go nowhere, with the same refusals as real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controlplane.domain.outbound.egress import Address, EgressPolicy, EgressTarget, parse_target
from controlplane.ports.outbound import OutboundFailed, OutboundResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call, as the other side would have seen it."""

    method: str
    target: EgressTarget
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


#: What the other side does with a call: status, headers, body.
Respond = Callable[[RecordedCall], tuple[int, Mapping[str, str], bytes]]


class MemoryOutbound:
    """Implements ``controlplane.ports.outbound.Outbound``; ``names`` replaces the resolver."""

    def __init__(
        self,
        *,
        policy: EgressPolicy,
        names: Mapping[str, tuple[Address, ...]],
        respond: Respond,
        largest_answer: int = 1024 * 1024,
    ) -> None:
        self.calls: list[RecordedCall] = []
        self._policy = policy
        self._names = names
        self._respond = respond
        self._largest = largest_answer

    def check(self, url: str) -> None:
        self._policy.check_target(parse_target(url))

    def fetch(
        self, url: str, *, headers: Mapping[str, str] | None = None, largest: int | None = None
    ) -> OutboundResponse:
        bound = self._largest if largest is None else largest
        return self._call("GET", url, body=b"", headers=headers or {}, largest=bound)

    def post(
        self, url: str, *, body: bytes, headers: Mapping[str, str] | None = None
    ) -> OutboundResponse:
        return self._call("POST", url, body=body, headers=headers or {}, largest=self._largest)

    def _call(
        self, method: str, url: str, *, body: bytes, headers: Mapping[str, str], largest: int
    ) -> OutboundResponse:
        target = parse_target(url)
        self._policy.check_target(target)
        literal = target.literal
        addresses = (literal,) if literal else self._names.get(target.host, ())
        if not addresses:
            raise OutboundFailed(f"the name {target.host} cannot be resolved")
        for address in addresses:
            self._policy.check_address(address, host=target.host)
        sent = {**headers, "Host": target.authority}
        call = RecordedCall(method=method, target=target, headers=sent, body=body)
        self.calls.append(call)
        status, response_headers, content = self._respond(call)
        if len(content) > largest:
            raise OutboundFailed(f"the answer has more than {largest} bytes")
        return OutboundResponse(
            status=status,
            headers={name.lower(): value for name, value in response_headers.items()},
            body=content,
            seconds=0.0,
            address=str(addresses[0]),
        )
