"""Nothing that leads into a network of ours is called, however its address is written."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.provisional import urls

from controlplane.domain.outbound.egress import (
    Address,
    EgressMisconfigured,
    EgressPolicy,
    EgressRefused,
    parse_target,
    special_purpose,
)

STRICT = EgressPolicy()

INSIDE = st.one_of(
    *(
        st.ip_addresses(v=4, network=network)
        for network in (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "224.0.0.0/4",
            "240.0.0.0/4",
        )
    )
)
OUTSIDE = st.ip_addresses(v=4).filter(lambda address: not special_purpose(address))


UNIQUE_LOCAL = ip_network("fc00::/7")


def spellings(inner: IPv4Address) -> list[IPv6Address]:
    """Every IPv6 address that packets to would end at that IPv4 address."""
    number = int(inner)
    return [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address(0x2002 << 112 | number << 80 | 1),
        IPv6Address(int(IPv6Address("64:ff9b::")) | number),
        # Teredo: the server is public, the client is the inner one with its bits turned round.
        IPv6Address(0x2001 << 112 | 0x08080808 << 64 | ~number & 0xFFFF_FFFF),
        IPv6Address(0x2001 << 112 | number << 64 | ~0x08080808 & 0xFFFF_FFFF),
        IPv6Address(int(IPv6Address("2606:4700:0:1::5efe:0:0")) | number),
    ]


def refused(policy: EgressPolicy, address: Address) -> bool:
    try:
        policy.check_address(address, host="hooks.example.com")
    except EgressRefused:
        return True
    return False


@given(INSIDE)
def test_an_address_inside_is_refused_in_every_spelling(inner: IPv4Address) -> None:
    assert refused(STRICT, inner)
    for spelling in spellings(inner):
        assert refused(STRICT, spelling), spelling


@given(OUTSIDE)
def test_a_public_address_is_fine_in_every_spelling_that_leads_to_it(inner: IPv4Address) -> None:
    assert not refused(STRICT, inner)
    for spelling in spellings(inner)[:3]:
        assert not refused(STRICT, spelling), spelling


@given(st.ip_addresses(v=6))
def test_what_is_accepted_is_public_by_the_standard_library_too(address: Address) -> None:
    if not refused(STRICT, address):
        special = (address.is_loopback, address.is_link_local, address.is_multicast)
        assert not any((*special, address.is_unspecified, address in UNIQUE_LOCAL))


@given(st.ip_addresses(v=4))
def test_the_table_agrees_with_the_standard_library_about_ipv4(address: Address) -> None:
    if not special_purpose(address):
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::",
        "::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "64:ff9b:1::a00:1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "4000::1",
        "255.255.255.255",
    ],
)
def test_known_ways_in_are_closed(text: str) -> None:
    assert refused(STRICT, ip_address(text))


@given(INSIDE, st.integers(min_value=0, max_value=32))
def test_a_network_that_is_allowed_opens_itself_and_nothing_else(
    inner: IPv4Address, prefix: int
) -> None:
    network = ip_network(f"{inner}/{max(prefix, 8)}", strict=False)
    policy = EgressPolicy.parse(allow=[str(network)])
    assert not refused(policy, inner)
    for spelling in spellings(inner)[:3]:
        assert not refused(policy, spelling)
    for other in (IPv4Address("127.0.0.1"), IPv4Address("10.0.0.1"), IPv4Address("169.254.1.1")):
        assert refused(policy, other) == (other not in network)


@given(st.ip_addresses(v=4))
def test_what_is_denied_stays_denied_although_it_is_allowed(address: IPv4Address) -> None:
    policy = EgressPolicy.parse(allow=["0.0.0.0/0", "::/0"], deny=[str(address)])
    assert refused(policy, address)
    for spelling in spellings(address):
        assert refused(policy, spelling), spelling


@given(urls())
def test_every_url_is_either_understood_or_refused_in_words(url: str) -> None:
    try:
        target = parse_target(url)
    except EgressRefused:
        return
    assert target.scheme in ("http", "https")
    assert target.host == target.host.lower() != ""
    assert 0 < target.port < 65536
    assert target.path.startswith("/")


@given(st.text(max_size=60))
def test_no_text_makes_it_fail_in_another_way(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}/x", f"https://example.com/{text}"):
        try:
            STRICT.check_target(parse_target(url))
        except EgressRefused:
            pass


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "enter the full URL"),
        ("hooks.example.com", "enter the full URL"),
        ("ftp://example.com", "enter the full URL"),
        ("file:///etc/passwd", "enter the full URL"),
        ("http://example.com", "the scheme http is not allowed; allowed are https"),
        ("https://user:word@example.com", "user name"),
        ("https://example.com:22/", "port 22"),
        ("https://example.com:0/", "port 0"),
        ("https://example.com:99999/", "the URL is not valid: Port out of range"),
        ("https://exa mple.com/", "a space"),
        ("https://example.com\\@evil.example/", "a space, a backslash"),
        ("https://127.1/", "neither a host name nor an IP address"),
        ("https://2130706433/", "neither a host name nor an IP address"),
        ("https://0x7f000001/", "neither a host name nor an IP address"),
        ("https://127.0.0.1/", "loopback"),
        ("https://[::1]/", "loopback"),
        ("https://[::ffff:10.0.0.1]/", "a private network"),
        ("https://169.254.169.254/latest/meta-data", "metadata"),
        ("https://-x.example.com/", "is not a valid host name"),
        ("https://example.com/\n", "a control character"),
        (f"https://example.com/{'x' * 3000}", "characters"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(EgressRefused, match=reason):
        STRICT.check_target(parse_target(url))


@pytest.mark.parametrize(
    ("url", "host", "port", "authority", "path"),
    [
        ("https://Hooks.Example.com", "hooks.example.com", 443, "hooks.example.com", "/"),
        ("https://example.com.:8443/a?b=c", "example.com", 8443, "example.com:8443", "/a?b=c"),
        ("https://例子.example/x#part", "xn--fsqu00a.example", 443, "xn--fsqu00a.example", "/x"),
        ("https://[2606:4700::1111]/", "2606:4700::1111", 443, "[2606:4700::1111]", "/"),
    ],
)
def test_a_url_is_read_as_it_will_be_called(
    url: str, host: str, port: int, authority: str, path: str
) -> None:
    target = parse_target(url)
    assert (target.host, target.port, target.authority, target.path) == (
        host,
        port,
        authority,
        path,
    )
    STRICT.check_target(target)


def test_where_hosts_are_listed_no_other_is_called() -> None:
    policy = EgressPolicy.parse(
        allow=["*.example.com", "10.0.0.0/8"],
        deny=["bad.example.com"],
        schemes=["https", "http"],
        ports=[443, 80],
    )
    policy.check_target(parse_target("https://a.example.com"))
    policy.check_target(parse_target("http://10.1.2.3"))
    for url in (
        "https://example.com",
        "https://bad.example.com",
        "https://example.com.evil.org",
        "https://8.8.8.8",
        "https://192.168.0.1",
    ):
        with pytest.raises(EgressRefused):
            policy.check_target(parse_target(url))


def test_a_name_that_is_allowed_makes_no_private_address_good() -> None:
    policy = EgressPolicy.parse(allow=["hooks.example.com"])
    assert refused(policy, ip_address("10.0.0.1"))


@pytest.mark.parametrize("entry", ["", "*", "10.0.0.0/33", "http://x", "exa mple", "*.*"])
def test_an_entry_that_is_neither_pattern_nor_network_is_named(entry: str) -> None:
    with pytest.raises(EgressMisconfigured):
        EgressPolicy.parse(allow=[entry])
    with pytest.raises(EgressMisconfigured, match="gopher"):
        EgressPolicy.parse(schemes=["gopher"])
