"""The webhook's certificate: for whom, until when, and what is made anew."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.certificate import (
    LIFETIME,
    RENEWED_BEFORE,
    SPREADS_WITHIN,
    Pair,
    certificates_in,
    new_pair,
    read_secret,
    secret_body,
    serves,
)
from greensched_operator.webhook.certificate_controller import CertificateController
from tests.operator.annotated_work import NOW_S, api_of, refused

HOSTS = ["greensched-webhook.greensched.svc", "127.0.0.1"]
PAIR = new_pair(HOSTS, NOW_S)
USABLE_S = (LIFETIME - RENEWED_BEFORE).total_seconds()
RENEWED_S = NOW_S + USABLE_S
SPREAD_S = RENEWED_S + SPREADS_WITHIN.total_seconds()
DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("pair", "hosts", "at_s", "is_served"),
    [
        pytest.param(PAIR, HOSTS, NOW_S, True, id="fresh"),
        pytest.param(PAIR, HOSTS[::-1], NOW_S, True, id="in-any-order"),
        pytest.param(PAIR, HOSTS, NOW_S - 299.0, True, id="a-clock-that-is-slow"),
        pytest.param(PAIR, HOSTS, NOW_S - 301.0, False, id="not-yet-valid"),
        pytest.param(PAIR, HOSTS, NOW_S + USABLE_S - 1.0, True, id="to-the-last-day"),
        pytest.param(PAIR, HOSTS, NOW_S + USABLE_S, False, id="long-before-its-end"),
        pytest.param(PAIR, HOSTS[:1], NOW_S, False, id="other-hosts"),
        pytest.param(replace(PAIR, key=new_pair(HOSTS, NOW_S).key), HOSTS, NOW_S, False,
                     id="another-key"),
        pytest.param(Pair(b"", b""), HOSTS, NOW_S, False, id="empty"),
        pytest.param(replace(PAIR, cert=PAIR.cert[:200]), HOSTS, NOW_S, False, id="cut-off"),
    ],
)  # fmt: skip
def test_a_pair_serves_its_hosts_while_its_end_is_far(
    pair: Pair, hosts: list[str], at_s: float, is_served: bool
) -> None:
    assert serves(pair, hosts, at_s) is is_served


def test_a_secret_gives_back_its_pair() -> None:
    assert read_secret(secret_body("tls", "greensched", PAIR)) == PAIR


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "AA=="}], ids=["none", "empty", "half"])
def test_a_secret_without_a_pair_holds_none(data: dict[str, str] | None) -> None:
    assert read_secret(json.dumps({"data": data}).encode()) is None


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"data": {"tls.crt": "#", "tls.key": "#"}}'])
def test_what_is_no_secret_is_refused(raw: bytes) -> None:
    with pytest.raises(BadInput):
        read_secret(raw)


class Cluster:
    """Keeps the Secret and the webhook's configuration, and notes what was trusted."""

    def __init__(self, pair: Pair | None) -> None:
        self.secret = None if pair is None else secret_body("tls", "greensched", pair)
        self.bundle = ""
        self.trusted: list[bytes] = []
        self.takes_secrets = True

    def trust(self, bundle: bytes) -> None:
        self.bundle = base64.b64encode(bundle).decode()

    def answer(self, request: httpx.Request) -> httpx.Response:
        if "mutatingwebhookconfigurations" in request.url.path:
            if request.method == "PATCH":
                self.bundle = json.loads(request.content)["webhooks"][0]["clientConfig"]["caBundle"]
                self.trusted.append(base64.b64decode(self.bundle))
            config = {"webhooks": [{"name": "hold", "clientConfig": {"caBundle": self.bundle}}]}
            return httpx.Response(200, json=config)
        if request.method == "GET":
            return httpx.Response(200, content=self.secret) if self.secret else refused(404)
        if not self.takes_secrets:
            return refused(403)
        self.secret = request.content
        return httpx.Response(200, json={})

    async def look(self, at_s: float = NOW_S) -> Pair:
        settings = OperatorSettings(namespace="greensched", webhook_hosts=HOSTS)
        await CertificateController(settings, api_of(self.answer), ManualClock(at_s)).look()
        assert self.secret is not None
        found = read_secret(self.secret)
        assert found is not None
        return found


async def test_without_a_secret_one_is_made_and_trusted() -> None:
    cluster = Cluster(None)
    pair = await cluster.look()
    assert serves(pair, HOSTS, NOW_S)
    assert cluster.trusted == [pair.cert]


async def test_a_good_pair_is_kept_and_trusted_once() -> None:
    cluster = Cluster(PAIR)
    assert await cluster.look() == await cluster.look() == PAIR
    assert cluster.trusted == [PAIR.cert]


async def test_while_a_new_one_spreads_the_old_one_is_trusted_too() -> None:
    cluster = Cluster(PAIR)
    pair = await cluster.look(RENEWED_S)
    assert pair != PAIR
    await cluster.look(SPREAD_S - 1.0)
    assert cluster.trusted == [pair.cert + PAIR.cert]


async def test_an_old_one_is_trusted_no_more_when_the_new_one_has_spread() -> None:
    """Each look is that of a controller that has just started."""
    cluster = Cluster(PAIR)
    pair = await cluster.look(RENEWED_S)
    for day in range(200):
        assert await cluster.look(SPREAD_S + day * DAY_S) == pair
    assert cluster.trusted == [pair.cert + PAIR.cert, pair.cert]


async def test_one_whose_secret_was_deleted_is_trusted_while_it_is_served() -> None:
    cluster = Cluster(PAIR)
    await cluster.look()
    cluster.secret = None
    pair = await cluster.look(NOW_S + DAY_S)
    assert cluster.trusted[1:] == [pair.cert + PAIR.cert]


async def test_one_that_was_brought_back_is_trusted_beside_the_one_that_is_served() -> None:
    cluster, other = Cluster(PAIR), new_pair(HOSTS, NOW_S)
    cluster.trust(other.cert)
    await cluster.look(NOW_S + DAY_S)
    await cluster.look(NOW_S + DAY_S)
    assert cluster.trusted == [PAIR.cert + other.cert, PAIR.cert]


async def test_new_ones_that_cannot_be_kept_do_not_pile_up() -> None:
    cluster, tries = Cluster(None), 20
    cluster.trust(PAIR.cert)
    cluster.takes_secrets = False
    for _ in range(tries):
        with pytest.raises(ApiUnavailable):
            await cluster.look()
    assert len(cluster.trusted) == tries
    assert all(PAIR.cert in bundle for bundle in cluster.trusted), "it is served still"
    assert len(certificates_in(cluster.trusted[-1])) == 3


async def test_an_old_one_that_is_no_certificate_is_not_trusted() -> None:
    cluster = Cluster(replace(PAIR, cert=PAIR.cert[:200] + PAIR.cert[-26:]))
    pair = await cluster.look()
    assert cluster.trusted == [pair.cert]
