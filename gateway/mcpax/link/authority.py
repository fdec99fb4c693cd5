"""Proof of authority (draft §4.2): that who registers as `dns:NAME` may, by a certificate with that name or by a token signed for it.

A token names one aggregator and works once. Whoever is refused learns that, and nothing of why: the reason goes to the log, for the
operator. Knows nothing of connections or files, and takes `certificate_names` as verified: only TLS can have done that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import jwt as pyjwt
import structlog

from mcpax.dns_names import authority_name, check_dns_name
from mcpax.errors import ErrorKind, Fault
from mcpax.link.anchors import Anchors, algorithm_for, parse_signing_key
from mcpax.link.replay import Replayed, UsedTokens
from mcpax.names import InvalidName

log = structlog.get_logger("mcpax.authority")

MAX_TOKEN_CHARS = 4096
MAX_JTI_CHARS = 128
MAX_LIFETIME_S = 3600
LIFETIME_S = 300
"""Of the tokens we sign: long enough for a slow link and a clock that is behind, short enough to be worth little when stolen."""
CLOCK_SKEW_S = 60
"""How far the clock of a child may be ahead of ours."""
MAX_TIMESTAMP = 1 << 40
_REQUIRED = ["sub", "aud", "exp", "iat", "jti"]
_OWN_TIME: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False, "require": _REQUIRED}
"""Times are checked here, against the clock given to us, and the audience more strictly than the library does."""


class _Unproven(Exception):
    """Why, for the log only. Fixed texts: nothing a stranger wrote."""


class AuthorityProof:
    def __init__(self, anchors: Anchors, aggregator_id: str, now: Callable[[], float] = time.time) -> None:
        self._anchors = anchors
        self._aggregator_id = aggregator_id
        self._now = now
        self._started = now()
        self._used = UsedTokens()

    def verify(self, authority: str, *, jwt: str | None, certificate_names: frozenset[str], subserver_id: str) -> None:
        """Return if proven; else raise one and the same `Fault` whatever was wrong."""
        try:
            name = authority_name(authority)
            # Equal, or not at all: a wildcard in a certificate is no proof of each name it covers.
            if any(name == each.lower() for each in certificate_names):
                return
            if jwt is None:
                raise _Unproven("no token, and no client certificate with that name")
            self._check(name, jwt, subserver_id)
        except Exception as error:  # whatever a token makes of its decoder, the answer is no
            told = isinstance(error, _Unproven | InvalidName | Replayed)
            reason = str(error) if told else f"the token cannot be decoded or verified ({type(error).__name__})"
            log.warning("authority_unproven", authority=f"{authority!r:.270}", subserver_id=subserver_id, reason=reason)
            raise Fault(
                ErrorKind.AUTHORITY_UNPROVEN,
                "authority_unproven: the claimed authority is not proven.",
                hint="Present a client certificate with that DNS name, or a fresh token signed for it. The aggregator logs why.",
            ) from None

    def _check(self, name: str, token: str, subserver_id: str) -> None:
        if len(token) > MAX_TOKEN_CHARS:
            raise _Unproven(f"the token is longer than {MAX_TOKEN_CHARS} characters")
        # Looked up by the name that was claimed, which an anchor must have to prove it. The token's key id only has to agree.
        key = self._anchors.get(name)
        if key is None:
            raise _Unproven("no trust anchor has that name")
        decoded = pyjwt.decode_complete(token, key, algorithms=[algorithm_for(key)], options=_OWN_TIME)
        claims = decoded["payload"]
        if str(decoded["header"].get("kid")).lower() != name:
            raise _Unproven("the key id is not that name")
        if str(claims["sub"]).lower() != name:
            raise _Unproven("the subject is another name")
        if claims["aud"] != self._aggregator_id:  # one that lists several could be passed on by each of them
            raise _Unproven("the audience is not this aggregator alone")
        if claims.get("subserver_id", subserver_id) != subserver_id:
            raise _Unproven("signed for another subserver_id")
        jti = claims["jti"]
        if not 0 < len(jti) <= MAX_JTI_CHARS:
            raise _Unproven(f"jti has not 1 to {MAX_JTI_CHARS} characters")
        now = self._now()
        self._used.use(name, jti, self._check_times(claims, now), now)  # last: a token that was refused is not used up

    def _check_times(self, claims: Mapping[str, Any], now: float) -> float:
        """When it expires."""
        expires, issued, not_before = (_timestamp(claims, key) for key in ("exp", "iat", "nbf"))
        if expires <= now:
            raise _Unproven("expired")
        if max(issued, not_before) > now + CLOCK_SKEW_S:
            raise _Unproven("issued in the future; compare the clocks")
        if expires - issued > MAX_LIFETIME_S:
            raise _Unproven(f"lives longer than {MAX_LIFETIME_S} s")
        # Which tokens were used before a restart is forgotten, so none from then is taken. `min`: our clock may have been set back.
        if issued < min(self._started, now) - CLOCK_SKEW_S:
            raise _Unproven("issued before this aggregator started; sign a fresh one")
        return expires


def sign_authority(key_pem: bytes, name: str, audience: str, subserver_id: str, now: float) -> str:
    """A child's proof that it may speak for `name`, to one aggregator, for one registration. `AnchorError`: the key cannot sign.

    The audience has to be known beforehand, by configuration or from the first contact: who signs for whichever id a parent names
    lets that parent pass the token on to the aggregator of that id.
    """
    key = parse_signing_key(key_pem)
    name = check_dns_name(name)
    claims = {
        "sub": name,
        "aud": audience,
        "iat": int(now),
        "exp": int(now) + LIFETIME_S,
        "jti": secrets.token_urlsafe(16),
        "subserver_id": subserver_id,
    }
    return pyjwt.encode(claims, key, algorithm=algorithm_for(key), headers={"kid": name})


def _timestamp(claims: Mapping[str, Any], key: str) -> float:
    value = claims.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIMESTAMP:
        raise _Unproven(f"{key} is not a time")
    return float(value)
