"""One file of a hub, a piece at a time, through the policy for calls to the outside."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

from controlplane.domain.common.resources import MIB
from controlplane.domain.hubs import HubRefused, piece_size
from controlplane.domain.outbound.egress import is_same_origin
from controlplane.ports.hubs import HubUnreachable
from controlplane.ports.outbound import Answer, Outbound, OutboundFailed

_LEAST, _MOST = MIB // 4, 64 * MIB
_FIRST = MIB
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
#: Answers of a place that a redirect led to, whose signature has run out.
_EXPIRED = frozenset({401, 403, 410})


class PieceSource:
    """Asks for pieces by ``Range``, and for as much as the line brings in a few seconds.

    Where a redirect leads is remembered until it no longer answers; ``headers`` go to the hub alone.
    """

    def __init__(
        self, *, outbound: Outbound, url: str, headers: Mapping[str, str], size: int
    ) -> None:
        self._outbound = outbound
        self._url = url
        self._headers = headers
        self._size = size
        self._place = ""
        self._length = _FIRST
        #: Bytes a second of the last piece.
        self.speed = 0.0

    def piece(self, offset: int) -> bytes:
        """Bytes of the file from there on; at least one.

        :raises HubUnreachable: if none came.
        :raises HubRefused: if the hub does not give the file out.
        :raises EgressRefused: if it leads to where the policy forbids.
        """
        last = min(offset + self._length, self._size) - 1
        try:
            answer = self._answer(offset, last)
        except OutboundFailed as failure:
            # A slow line may manage less.
            self._length = max(_LEAST, self._length // 2)
            self._place = ""
            raise HubUnreachable(str(failure)) from failure
        content = self._content(answer, offset=offset, last=last)
        self.speed = len(content) / max(answer.seconds, 1e-3)
        self._length = piece_size(
            last=self._length, seconds=answer.seconds, least=_LEAST, most=_MOST
        )
        return content

    def _content(self, answer: Answer, *, offset: int, last: int) -> bytes:
        if answer.status in (401, 403, 404):
            raise HubRefused(
                f"the hub does not give {self._url} out (status {answer.status}); its owner may ask for "
                "consent, or the file is gone"
            )
        whole = answer.status == 200 and offset == 0 and len(answer.body) == self._size
        if answer.status != 206 and not whole:
            raise HubUnreachable(
                f"the hub answered {answer.status} when asked for a piece of a file"
            )
        if not whole and len(answer.body) != last - offset + 1:
            raise HubUnreachable(
                f"{len(answer.body)} bytes came where {last - offset + 1} were asked for"
            )
        return answer.body

    def _answer(self, offset: int, last: int) -> Answer:
        if self._place:
            answer = self._ask(self._place, offset, last)
            if answer.status not in _EXPIRED:
                return answer
            self._place = ""
        url = self._url
        for _ in range(_MOST_REDIRECTS):
            answer = self._ask(url, offset, last)
            if answer.status not in _REDIRECTS:
                self._place = url if url != self._url else ""
                return answer
            url = urljoin(url, answer.headers.get("location", ""))
        raise HubUnreachable(f"the hub redirects more than {_MOST_REDIRECTS} times")

    def _ask(self, url: str, offset: int, last: int) -> Answer:
        own = is_same_origin(before=self._url, after=url)
        headers = {"Range": f"bytes={offset}-{last}", **(self._headers if own else {})}
        # A server without ranges answers with all of it.
        return self._outbound.fetch(url, headers=headers, largest=max(_MOST, last - offset + 1))
