"""Proof of authority: what proves a name, and everything that does not, all refused alike."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat, load_pem_private_key
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mcpax.errors import ErrorKind, Fault
from mcpax.link.anchors import AnchorError, parse_anchor, read_anchors
from mcpax.link.authority import LIFETIME_S, MAX_TOKEN_CHARS, AuthorityProof, sign_authority
from mcpax.link.replay import MAX_PER_NAME, Replayed, UsedTokens
from mcpax.names import InvalidName
from mcpax.pki import Pair, make_authority_key

NAME = "edge01.factory.example.com"
OTHER = "edge02.factory.example.com"
AUTHORITY = f"dns:{NAME}"
AGGREGATOR = "1c1f1f0e-0000-4000-8000-000000000001"
SUBSERVER = "550e8400-e29b-41d4-a716-446655440000"
START = 1_800_000_000.0
NOBODY: frozenset[str] = frozenset()


def p256() -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), private)


ED25519 = make_authority_key()
OTHERS = make_authority_key()
KEYS = {"EdDSA": ED25519, "ES256": p256()}


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def proof_with(pair: Pair = ED25519, clock: Clock | None = None) -> AuthorityProof:
    anchors = {NAME: parse_anchor(pair.public), OTHER: parse_anchor(OTHERS.public)}
    return AuthorityProof(anchors, AGGREGATOR, clock or Clock())


@pytest.fixture
def proof(clock: Clock) -> AuthorityProof:
    return proof_with(clock=clock)


def check(
    proof: AuthorityProof,
    token: str | None,
    *,
    authority: str = AUTHORITY,
    names: frozenset[str] = NOBODY,
    subserver_id: str = SUBSERVER,
) -> None:
    proof.verify(authority, jwt=token, certificate_names=names, subserver_id=subserver_id)


def refused(proof: AuthorityProof, token: str | None, **given: Any) -> str:
    """The reason in the log; what the caller is told is always the same."""
    with capture_logs() as logs, pytest.raises(Fault) as fault:
        check(proof, token, **given)
    assert fault.value.kind is ErrorKind.AUTHORITY_UNPROVEN
    assert fault.value.message == "authority_unproven: the claimed authority is not proven."
    assert fault.value.details == {}
    assert fault.value.__cause__ is None
    [line] = logs
    assert (line["event"], line["log_level"]) == ("authority_unproven", "warning")
    reason: str = line["reason"]
    assert reason not in fault.value.text()
    return reason


CLAIMS: dict[str, Any] = {"sub": NAME, "aud": AGGREGATOR, "iat": int(START), "exp": int(START) + 300, "jti": "one"}


def token(key: bytes = ED25519.key, *, headers: Mapping[str, Any] | None = None, **claims: Any) -> str:
    """Signed in earnest, with any header and claims; what is None is left out."""
    private = load_pem_private_key(key, None)
    assert isinstance(private, Ed25519PrivateKey)
    return raw(_given({"alg": "EdDSA", "kid": NAME, **(headers or {})}), _given({**CLAIMS, **claims}), private.sign)


def raw(header: object, claims: object, sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    """Put together by hand, as no library would do it."""

    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    head = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
    return f"{head}.{part(sign(head.encode()))}"


def hmac_with_public_key(data: bytes) -> bytes:
    return hmac.digest(ED25519.public, data, hashlib.sha256)


def _given(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


BAD_TIMES: list[Any] = ["soon", True, -1, 1e300, 10**300]


@pytest.mark.req("AX-4.2-3")
@pytest.mark.parametrize("algorithm", KEYS)
def test_a_token_signed_for_the_name_proves_it(algorithm: str) -> None:
    pair = KEYS[algorithm]
    signed = sign_authority(pair.key, NAME.upper(), AGGREGATOR, SUBSERVER, START)
    assert pyjwt.get_unverified_header(signed) == {"alg": algorithm, "kid": NAME, "typ": "JWT"}
    for authority in (AUTHORITY, AUTHORITY.upper()):
        check(proof_with(pair), signed, authority=authority)


@pytest.mark.req("AX-4.2-3")
def test_a_certificate_with_the_name_proves_it(proof: AuthorityProof) -> None:
    check(proof, None, names=frozenset({"hub.example.com", NAME}))
    check(proof, None, names=frozenset({NAME.upper()}))
    check(proof, "not looked at", names=frozenset({NAME}))


@pytest.mark.parametrize("names", [NOBODY, {"*.factory.example.com"}, {"factory.example.com"}, {OTHER}, {f"a.{NAME}"}, {f"{NAME}\0"}, {""}])
def test_a_certificate_with_another_name_proves_nothing(proof: AuthorityProof, names: set[str]) -> None:
    assert "no client certificate with that name" in refused(proof, None, names=frozenset(names))


def test_a_certificate_of_another_does_not_spoil_a_token(proof: AuthorityProof) -> None:
    check(proof, token(), names=frozenset({OTHER}))


@pytest.mark.parametrize(
    "authority",
    ["", NAME, "dns:", "dns:*.example.com", "dns:*", "uri:x", f" dns:{NAME}", f"dns:{NAME}.", f"dns:{NAME}\n", "dns:../x", "dns:é"],
)
def test_authorities_that_are_none(proof: AuthorityProof, authority: str) -> None:
    everything = frozenset({"*.example.com", "*", "", NAME, f"{NAME}.", "../x", "é", "x"})
    assert "is not a" in refused(proof, token(), authority=authority, names=everything)


def test_other_signers_may_leave_the_subserver_open_and_use_fractions(proof: AuthorityProof) -> None:
    check(proof, token(jti="a"))
    check(proof, token(jti="b", subserver_id=SUBSERVER, iat=START + 0.5, exp=START + 100.5, nbf=int(START)))


@pytest.mark.req("AX-4.2-3")
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(token(aud="another"), "audience", id="for another aggregator"),
        pytest.param(token(aud=[AGGREGATOR]), "audience", id="for a list, even of one"),
        pytest.param(token(aud=[AGGREGATOR, "another"]), "audience", id="for several aggregators"),
        pytest.param(token(sub=OTHER), "subject", id="for another name"),
        pytest.param(token(sub=f"*.{NAME}"), "subject", id="for a wildcard"),
        pytest.param(token(sub=5), "InvalidSubject", id="subject is a number"),
        pytest.param(token(exp=int(START)), "expired", id="expires this second"),
        pytest.param(token(iat=int(START) - 50, exp=int(START) - 1), "expired", id="expired"),
        pytest.param(token(exp=int(START) + 3601), "lives longer than 3600 s", id="lives too long"),
        pytest.param(token(iat=int(START) + 50, exp=int(START) + 3651), "lives longer than 3600 s", id="lives too long, from later on"),
        pytest.param(token(iat=int(START) - 50, exp=int(START) + 3551), "lives longer than 3600 s", id="lived too long already"),
        pytest.param(token(iat=int(START) + 61), "in the future", id="issued in the future"),
        pytest.param(token(nbf=int(START) + 61), "in the future", id="not to be used yet"),
        pytest.param(token(iat=int(START) - 61), "before this aggregator started", id="from before the start"),
        pytest.param(token(subserver_id="550e8400-e29b-41d4-a716-446655440001"), "another subserver_id", id="another subserver"),
        pytest.param(token(subserver_id=[SUBSERVER]), "another subserver_id", id="a list of subservers"),
        pytest.param(token(subserver_id=7), "another subserver_id", id="subserver is a number"),
        pytest.param(token(jti=""), "jti", id="empty jti"),
        pytest.param(token(jti="x" * 129), "jti", id="long jti"),
        pytest.param(token(jti=7), "InvalidJTI", id="jti is a number"),
        *(pytest.param(token(**dict[str, Any]({key: None})), "MissingRequiredClaim", id=f"no {key}") for key in CLAIMS),
        *(pytest.param(token(exp=value), "exp is not a time", id=f"exp {str(value)[:5]}") for value in BAD_TIMES),
        pytest.param(token(exp=[]), "exp is not a time", id="exp is a list"),
        pytest.param(raw({"alg": "none", "kid": NAME}, CLAIMS), "InvalidAlgorithm", id="alg none"),
        pytest.param(raw({"alg": "None", "kid": NAME}, CLAIMS), "InvalidAlgorithm", id="alg None"),
        pytest.param(raw({"alg": "HS256", "kid": NAME}, CLAIMS, hmac_with_public_key), "InvalidAlgorithm", id="HS256 with the public key"),
        pytest.param(raw({"alg": "EdDSA", "kid": NAME}, CLAIMS, hmac_with_public_key), "InvalidSignature", id="HMAC called EdDSA"),
        pytest.param(raw({"alg": "EdDSA", "kid": NAME}, CLAIMS), "InvalidSignature", id="not signed"),
        pytest.param(raw({"kid": NAME}, CLAIMS), "InvalidAlgorithm", id="no algorithm"),
        pytest.param(
            sign_authority(KEYS["ES256"].key, NAME, AGGREGATOR, SUBSERVER, START), "InvalidAlgorithm", id="not the key's algorithm"
        ),
        pytest.param(token(OTHERS.key), "InvalidSignature", id="signed by another anchor"),
        pytest.param(token(OTHERS.key, headers={"kid": OTHER}), "InvalidSignature", id="signed by another anchor, and says so"),
        pytest.param(token(headers={"kid": OTHER}), "key id", id="names another key"),
        pytest.param(token(headers={"kid": None}), "key id", id="names no key"),
        pytest.param(token(headers={"kid": "../../etc/passwd"}), "key id", id="names a path"),
        pytest.param(token(headers={"kid": f"./{NAME}"}), "key id", id="names a path to the key"),
        pytest.param(token(headers={"crit": ["more"], "more": 1}), "InvalidToken", id="needs an extension"),
        pytest.param(token(headers={"crit": ["b64"], "b64": False}), "DecodeError", id="payload elsewhere"),
        pytest.param(token(headers={"jku": "https://evil.example/"}).replace(".", "..", 1), "DecodeError", id="four parts"),
        pytest.param(token(extra="x" * MAX_TOKEN_CHARS), "longer than", id="huge"),
        pytest.param("x" * 10_000_000, "longer than", id="huge junk"),
        pytest.param("", "DecodeError", id="empty"),
        pytest.param("a.b.c", "DecodeError", id="junk"),
        pytest.param("é.ü.\ud800", "", id="not ASCII"),
        pytest.param(raw({"alg": "EdDSA", "kid": [NAME]}, CLAIMS), "", id="key id is a list"),
        pytest.param(raw(["EdDSA"], CLAIMS), "", id="header is a list"),
    ],
)
def test_tokens_that_prove_nothing(proof: AuthorityProof, bad: str, reason: str) -> None:
    assert reason in refused(proof, bad)
    check(proof, token(jti="one"))  # none of them was counted as used


def test_a_header_nested_deeper_than_the_decoder_goes(proof: AuthorityProof) -> None:
    nested = base64.urlsafe_b64encode(b"[" * 3000).rstrip(b"=").decode()
    refused(proof, f"{nested}.e30.AA"[:MAX_TOKEN_CHARS])


def test_an_anchor_speaks_for_its_own_name_only(proof: AuthorityProof) -> None:
    below = f"a.{NAME}"
    assert "no trust anchor" in refused(proof, token(sub=below), authority=f"dns:{below}")
    assert "no trust anchor" in refused(proof, token(sub="factory.example.com"), authority="dns:factory.example.com")
    mine = sign_authority(ED25519.key, OTHER, AGGREGATOR, SUBSERVER, START)
    assert "InvalidSignature" in refused(proof, mine, authority=f"dns:{OTHER}")
    assert "subject" in refused(proof, token(OTHERS.key, headers={"kid": OTHER}), authority=f"dns:{OTHER}")


def test_a_token_works_once(proof: AuthorityProof, clock: Clock) -> None:
    once = token()
    check(proof, once)
    assert "used before" in refused(proof, once)
    assert "used before" in refused(proof, token(exp=int(START) + 200)), "the id counts, not the bytes"
    clock.now = START + 299.9
    assert "used before" in refused(proof, once)
    clock.now = START + 300
    assert "expired" in refused(proof, once)


def test_a_token_used_before_a_restart_does_not_work_after_it(proof: AuthorityProof, clock: Clock) -> None:
    long = token(exp=int(START) + 3600)
    check(proof, long)
    clock.now = START + 100
    restarted = proof_with(clock=clock)
    assert "before this aggregator started" in refused(restarted, long)
    check(restarted, token(jti="fresh", iat=int(clock.now)))


def test_a_clock_that_is_set_back_locks_nobody_out(clock: Clock) -> None:
    clock.now = START + 1_000_000
    proof = proof_with(clock=clock)
    clock.now = START
    check(proof, sign_authority(ED25519.key, NAME, AGGREGATOR, SUBSERVER, START))


def test_the_signed_one_is_short_lived_bound_and_unique() -> None:
    one, two = (
        pyjwt.decode(sign_authority(ED25519.key, NAME, AGGREGATOR, SUBSERVER, START), options={"verify_signature": False}) for _ in "12"
    )
    assert one["exp"] - one["iat"] == LIFETIME_S
    assert (one["sub"], one["aud"], one["subserver_id"], one["iat"]) == (NAME, AGGREGATOR, SUBSERVER, int(START))
    assert one["jti"] != two["jti"]
    assert "another subserver_id" in refused(
        proof_with(), sign_authority(ED25519.key, NAME, AGGREGATOR, "another", START), subserver_id=SUBSERVER
    )


@pytest.mark.parametrize("key", [b"", b"junk", ED25519.public, "rsa", "p384", "ed448"])
def test_keys_that_cannot_sign(key: bytes | str) -> None:
    pem = key if isinstance(key, bytes) else unfit(key).key
    with pytest.raises(AnchorError, match="Make one: mcpax pki authority NAME"):
        sign_authority(pem, NAME, AGGREGATOR, SUBSERVER, START)


def test_only_a_dns_name_is_signed_for() -> None:
    with pytest.raises(InvalidName):
        sign_authority(ED25519.key, "*.example.com", AGGREGATOR, SUBSERVER, START)


SIGNED = sign_authority(ED25519.key, NAME, AGGREGATOR, SUBSERVER, START)


@given(st.data())
def test_no_mutated_token_is_accepted(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SIGNED) - 1))
    length = data.draw(st.integers(0, 3))
    mutated = SIGNED[:at] + data.draw(st.text(max_size=3)) + SIGNED[at + length :]
    # The last character of a part holds bits that base64 ignores: another spelling of the same bytes is the same token.
    if [_bytes(part) for part in mutated.split(".")] != [_bytes(part) for part in SIGNED.split(".")]:
        refused(proof_with(), mutated)


def _bytes(part: str) -> bytes | str:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return part


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)


@given(st.dictionaries(st.sampled_from([*CLAIMS, "nbf", "subserver_id"]), JSON, min_size=1))
@example({"exp": float("nan")})
@example({"exp": float("inf")})
@example({"nbf": float("nan")})
@example({"iat": False})
def test_a_signed_token_with_any_claims_is_refused_or_means_the_same(claims: dict[str, Any]) -> None:
    """Its key may be in bad hands: whatever it signs, nothing but a whole and valid set of claims passes, and nothing else is raised."""
    filled = _given({**CLAIMS, **claims})
    signed = token(**claims)
    try:
        with capture_logs():
            check(proof_with(), signed)
    except Fault as fault:
        assert fault.kind is ErrorKind.AUTHORITY_UNPROVEN  # noqa: PT017  both ways out are right
        return
    assert filled["sub"].lower() == NAME
    assert filled["aud"] == AGGREGATOR
    assert START < filled["exp"] <= filled["iat"] + 3600
    assert 0 < len(filled["jti"]) <= 128
    assert filled.get("subserver_id", SUBSERVER) == SUBSERVER


def test_what_was_used_is_bounded_by_name_and_forgotten_when_expired() -> None:
    used = UsedTokens(max_per_name=2)
    used.use("a", "1", expires=10, now=0)
    used.use("a", "2", expires=20, now=0)
    with pytest.raises(Replayed, match="more than 2 tokens"):
        used.use("a", "3", expires=10, now=9)
    used.use("b", "1", expires=10, now=9)
    used.use("a", "3", expires=30, now=10)
    assert len(used) == 3
    with pytest.raises(Replayed, match="used before"):
        used.use("a", "2", expires=20, now=10)


def test_one_child_in_a_loop_does_not_keep_others_out(proof: AuthorityProof) -> None:
    for number in range(MAX_PER_NAME):
        check(proof, token(jti=str(number)))
    assert "is its child in a loop?" in refused(proof, token(jti="more"))
    check(proof, token(OTHERS.key, sub=OTHER, headers={"kid": OTHER}), authority=f"dns:{OTHER}")


UNFIT: dict[str, Callable[[], rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed448PrivateKey]] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ed448": Ed448PrivateKey.generate,
}


def unfit(kind: str) -> Pair:
    key = UNFIT[kind]()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), private)


def test_anchors_from_a_directory(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.pem").write_bytes(ED25519.public)
    (tmp_path / f"{OTHER.upper()}.pem").write_bytes(KEYS["ES256"].public)
    (tmp_path / "README").write_text("not looked at")
    (tmp_path / ".half.pem").write_text("not looked at")
    anchors = read_anchors(tmp_path)
    assert set(anchors) == {NAME, OTHER}
    AuthorityProof(anchors, AGGREGATOR, Clock()).verify(AUTHORITY, jwt=token(), certificate_names=NOBODY, subserver_id=SUBSERVER)


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("edge.pem", b"junk", "no public key in PEM form"),
        ("edge.pem", ED25519.key, "no public key in PEM form"),
        ("edge.pem", "rsa", "neither an Ed25519 nor a P-256 key"),
        ("edge.pem", "p384", "neither an Ed25519 nor a P-256 key"),
        ("edge.pem", "ed448", "neither an Ed25519 nor a P-256 key"),
        ("*.example.com.pem", ED25519.public, "is not a DNS name"),
        ("a b.pem", ED25519.public, "is not a DNS name"),
    ],
)
def test_an_anchor_that_cannot_be_used_is_told(tmp_path: Path, file: str, content: bytes | str, what: str) -> None:
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else unfit(content).public)
    with pytest.raises(AnchorError) as error:
        read_anchors(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / file}: ")
    assert what in str(error.value)


def test_a_directory_of_anchors_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AnchorError, match=r"nowhere: cannot be read: No such file or directory\. Check the path"):
        read_anchors(tmp_path / "nowhere")
