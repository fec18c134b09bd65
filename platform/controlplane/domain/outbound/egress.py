"""Where the product itself may call: by scheme, by port, by name, and by the addresses behind the name.

A URL that somebody typed in must not become a way into the company's network: a name that an attacker
owns can lead to the cloud's metadata service as well as to a web server. So two questions are asked::

    https://hooks.example.com/x ──parse_target──▶ Target ──check_target──▶ may this name be called at all?
                                                  │
                                              (resolve)
                                                  ▼
                                            every address ──check_address──▶ is it one of the public internet?

What calls must connect to an address that was checked; asking the resolver a second time would let it
answer something else. Addresses of the special-purpose registries of IANA are refused unless a network
of the allow-list holds them (RFC 6890 and its successors; RFC 4291, 3056, 4380, 6052 for addresses that
hold another one). Names never make an address good, and what is denied stays denied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from controlplane.domain.common.reasons import Reason, ReasonedError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
#: Scheme, host and port.
UrlOrigin = tuple[str, str, int]

DEFAULT_PORTS = {"https": 443, "http": 80}
LONGEST_URL = 2000
_LONGEST_HOST = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_HOST_PATTERN = re.compile(r"[a-z0-9_.*-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f\\]")


class EgressRefused(ReasonedError):
    """The egress policy refuses the call; the message says what to change."""


class EgressMisconfigured(ReasonedError, ValueError):
    """An entry of the allow-list or of the deny-list is neither a host pattern nor a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressTarget:
    """The parts of a URL that are called."""

    scheme: str
    #: In lower case, as it goes over the wire: a name in ASCII, or an address without brackets.
    host: str
    port: int
    #: Path and query, as the first line of a request has them.
    path: str

    @property
    def literal(self) -> Address | None:
        """The host where it is an address and no name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def origin(self) -> UrlOrigin:
        """Scheme, host and port, as RFC 6454 compares them."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """For the ``Host`` header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(url: str) -> EgressTarget:
    """The parts of an ``http`` or ``https`` URL.

    :raises EgressRefused: if it is no such URL, or is written in a way that programs read differently.
    """
    if len(url) > LONGEST_URL:
        raise EgressRefused(
            "egress.url.too_long",
            "the URL has {length} characters; at most {limit} are allowed",
            length=len(url),
            limit=LONGEST_URL,
        )
    if _UNPRINTABLE.search(url):
        raise EgressRefused(
            "egress.url.character_not_allowed",
            "the URL contains a space, a backslash or a control character",
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise EgressRefused(
            "egress.url.invalid", "the URL is not valid: {error}", error=str(error)
        ) from None
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise EgressRefused(
            "egress.url.incomplete",
            "enter the full URL, for example https://hooks.example.com/ninefold",
        )
    if "@" in parts.netloc:
        raise EgressRefused(
            "egress.url.credentials_not_allowed",
            "the URL contains a user name or a password; credentials in URLs are not supported",
        )
    if port == 0:
        raise EgressRefused("egress.port.zero", "port 0 is not a valid port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii():
        raise EgressRefused(
            "egress.url.not_ascii", "percent-encode the non-ASCII characters in the path of the URL"
        )
    return EgressTarget(
        scheme=parts.scheme,
        host=_normalize_host(host),
        port=port or DEFAULT_PORTS[parts.scheme],
        path=path,
    )


def url_origins(value: object) -> frozenset[UrlOrigin]:
    """Return the origin of every URL in a text, or in the mappings and lists of an options document.

    A URL that cannot be parsed is an origin of its own: a plug-in may interpret it in any way.
    """
    if isinstance(value, Mapping):
        return frozenset().union(*(url_origins(one) for one in value.values()))
    if isinstance(value, (list, tuple)):
        return frozenset().union(*(url_origins(one) for one in value))
    if not isinstance(value, str):
        return frozenset()
    try:
        return frozenset({parse_target(value).origin})
    except EgressRefused:
        return frozenset({("", value, 0)}) if "://" in value else frozenset()


def is_same_origin(*, before: object, after: object) -> bool:
    """Return whether a credential for the URLs of ``before`` may be sent to those of ``after``.

    Not to another scheme, host or port: a user who may change the URL could send it to a server of their own.
    """
    return url_origins(after) <= url_origins(before)


def _normalize_host(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        plain = host.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        plain = ""
    labels = plain.split(".")
    if len(plain) > _LONGEST_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise EgressRefused(
            "egress.host.invalid", "{host} is not a valid host name", host=repr(host)
        )
    if re.fullmatch(r"\d+|0x[0-9a-f]*", labels[-1]):
        # Resolvers read 127.1 and 0x7f000001 as addresses.
        raise EgressRefused(
            "egress.host.unusual_address",
            "{host} is neither a host name nor an IP address in standard notation",
            host=repr(host),
        )
    return plain


_PRIVATE = Reason("egress.network.private", "a private network")
_LOOPBACK = Reason("egress.network.loopback", "this machine itself (loopback)")
_DOCUMENTATION = Reason("egress.network.documentation", "a network for documentation")
_MULTICAST = Reason("egress.network.multicast", "a multicast network")

#: Special-purpose networks with their purpose. The first that contains an address applies.
SPECIAL: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), purpose)
    for network, purpose in (
        ("0.0.0.0/8", Reason("egress.network.this_network", "this network")),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", Reason("egress.network.carrier_shared", "a carrier's shared network")),
        ("127.0.0.0/8", _LOOPBACK),
        (
            "169.254.0.0/16",
            Reason(
                "egress.network.cloud_metadata",
                "a link-local network, such as a cloud metadata service",
            ),
        ),
        ("172.16.0.0/12", _PRIVATE),
        (
            "192.0.0.0/24",
            Reason("egress.network.protocol_assignments", "a network for protocol assignments"),
        ),
        ("192.0.2.0/24", _DOCUMENTATION),
        ("192.88.99.0/24", Reason("egress.network.6to4_relays", "a network of 6to4 relays")),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", Reason("egress.network.benchmarks", "a network for benchmarks")),
        ("198.51.100.0/24", _DOCUMENTATION),
        ("203.0.113.0/24", _DOCUMENTATION),
        ("224.0.0.0/4", _MULTICAST),
        ("240.0.0.0/4", Reason("egress.network.reserved", "a reserved network")),
        ("::/128", Reason("egress.network.unspecified", "the unspecified address")),
        ("::1/128", _LOOPBACK),
        ("100::/64", Reason("egress.network.discard_only", "a discard-only network")),
        ("2001:db8::/32", _DOCUMENTATION),
        ("3fff::/20", _DOCUMENTATION),
        ("5f00::/16", Reason("egress.network.segment_routing", "a network for segment routing")),
        (
            "64:ff9b:1::/48",
            Reason("egress.network.address_translation", "a network for address translation"),
        ),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", Reason("egress.network.link_local", "a link-local network")),
        ("fec0::/10", Reason("egress.network.site_local", "a site-local network")),
        ("ff00::/8", _MULTICAST),
    )
)
_TEREDO = IPv6Network("2001::/32")
_6TO4 = IPv6Network("2002::/16")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_PROTOCOLS = IPv6Network("2001::/23")
_UNICAST = IPv6Network("2000::/3")
_LOW_32 = 0xFFFF_FFFF
#: The middle of an interface identifier with an embedded IPv4 address (ISATAP), with and without local bit.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


def _unwrap_mapped_address(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped address: that is what gets connected to."""
    if isinstance(address, IPv6Address):
        plain = IPv6Address(int(address))
        return plain.ipv4_mapped or plain
    return address


def embedded_ipv4_addresses(address: Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that packets to this IPv6 address may reach."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    found = []
    if address in _6TO4:
        found.append(number >> 80 & _LOW_32)
    elif address in _TEREDO:
        # The server as it is, the client with its bits turned round.
        found += [number >> 64 & _LOW_32, ~number & _LOW_32]
    elif address in _NAT64 or address in _COMPATIBLE or number >> 32 & _LOW_32 in _ISATAP:
        found.append(number & _LOW_32)
    return tuple(IPv4Address(one) for one in found)


def special_purpose(address: Address) -> str:
    """Return the purpose of an address outside the public internet; empty for a public one.

    Embedded addresses of tunnels are not considered: see :func:`embedded`.
    """
    for network, purpose in SPECIAL:
        if address.version == network.version and address in network:
            return purpose
    if isinstance(address, IPv4Address) or address in _NAT64:
        return ""
    if address in _UNICAST and (address in _TEREDO or address not in _PROTOCOLS):
        return ""
    return Reason("egress.network.reserved", "a reserved network")


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """The egress policy. The default: ``https`` to every public address on port 443 or 8443."""

    schemes: frozenset[str] = frozenset({"https"})
    ports: frozenset[int] = frozenset({443, 8443})
    #: Patterns of host names, ``*.example.com``; where there is one, other hosts are refused.
    allowed_hosts: tuple[str, ...] = ()
    #: Networks that are fine although they are not public.
    allowed_networks: tuple[Network, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    denied_networks: tuple[Network, ...] = ()
    #: The setting that allows more, for messages.
    allowed_by: str = "NINEFOLD_EGRESS_ALLOW"

    @classmethod
    def parse(
        cls,
        *,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        schemes: Iterable[str] = ("https",),
        ports: Iterable[int] = (443, 8443),
    ) -> EgressPolicy:
        """The policy that lists of host patterns and networks (``10.1.0.0/16``) describe.

        :raises EgressMisconfigured: naming the entry that is neither.
        """
        unknown = sorted(set(schemes) - set(DEFAULT_PORTS))
        if unknown:
            raise EgressMisconfigured(
                "egress.scheme.unknown",
                "{scheme} is not a supported scheme; use https or http",
                scheme=repr(unknown[0]),
            )
        allowed, denied = (
            tuple(map(_parse_allowlist_entry, allow)),
            tuple(map(_parse_allowlist_entry, deny)),
        )
        return cls(
            schemes=frozenset(schemes),
            ports=frozenset(ports),
            allowed_hosts=tuple(one for one in allowed if isinstance(one, str)),
            allowed_networks=tuple(one for one in allowed if not isinstance(one, str)),
            denied_hosts=tuple(one for one in denied if isinstance(one, str)),
            denied_networks=tuple(one for one in denied if not isinstance(one, str)),
        )

    def check_target(self, target: EgressTarget) -> None:
        """Everything that can be judged without a resolver.

        :raises EgressRefused: if its scheme, port or host may not be called.
        """
        host = target.host
        if target.scheme not in self.schemes:
            raise EgressRefused(
                "egress.scheme.not_allowed",
                "the scheme {scheme} is not allowed; allowed are {schemes}",
                schemes=_join_names(self.schemes),
                scheme=target.scheme,
            )
        if target.port not in self.ports:
            ports = " or ".join(map(str, sorted(self.ports)))
            raise EgressRefused(
                "egress.port.not_allowed",
                "port {port} is not allowed; allowed are {ports}",
                port=target.port,
                ports=ports,
            )
        if any(_host_matches(host, pattern) for pattern in self.denied_hosts):
            raise EgressRefused(
                "egress.host.denied",
                "{host} is not allowed: it is listed in NINEFOLD_EGRESS_DENY",
                host=host,
            )
        literal = target.literal
        if literal is not None:
            self.check_address(literal, host=host)
            if _any_contains(self.allowed_networks, _unwrap_mapped_address(literal)):
                return
        if self.allowed_hosts and not any(_host_matches(host, one) for one in self.allowed_hosts):
            raise EgressRefused(
                "egress.host.not_allowed",
                "{host} is not allowed: it is not listed in {setting}; an administrator "
                "of the company can add it",
                host=host,
                setting=self.allowed_by,
            )

    def check_address(self, address: Address, *, host: str) -> None:
        """``host`` is for the message: the name that leads there.

        :raises EgressRefused: if nothing at that address may be called.
        """
        ends = (
            _unwrap_mapped_address(address),
            *embedded_ipv4_addresses(_unwrap_mapped_address(address)),
        )
        for end in ends:
            if _any_contains(self.denied_networks, end):
                raise EgressRefused(
                    "egress.address.denied",
                    "{host} is not allowed: its address {address} is in NINEFOLD_EGRESS_DENY",
                    host=host,
                    address=str(end),
                )
        if _any_contains(self.allowed_networks, ends[0]):
            return
        for end in ends:
            purpose = special_purpose(end)
            if purpose and not _any_contains(self.allowed_networks, end):
                raise EgressRefused(
                    "egress.address.not_public",
                    "{host} is not allowed: it resolves to {address}, which is {purpose}; an "
                    "administrator of the company can allow the network in {setting}",
                    host=host,
                    address=str(end),
                    purpose=purpose,
                    setting=self.allowed_by,
                )


def _parse_allowlist_entry(text: str) -> str | Network:
    entry = text.strip().lower()
    try:
        return ip_network(entry)
    except ValueError as error:
        if "/" in entry or not _HOST_PATTERN.fullmatch(entry) or entry.strip("*.") == "":
            raise EgressMisconfigured(
                "egress.allowlist.invalid_entry",
                "{entry} is neither a host pattern such as *.example.com nor a network "
                "such as 10.1.0.0/16: {error}",
                entry=repr(text),
                error=str(error),
            ) from None
    return entry


def _host_matches(host: str, pattern: str) -> bool:
    """Return whether the host matches; ``*.example.com`` matches every subdomain, not ``example.com`` itself."""
    return fnmatchcase(host, pattern)


def _any_contains(networks: Iterable[Network], address: Address) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _join_names(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))
