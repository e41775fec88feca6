"""Whatever an extender answers, the chart's scheduler places the pod: the entry is `ignorable`."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from greensched_testbed.chart import CHART, RELEASE
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import GreenSchedProcesses
from greensched_testbed.ports import free_port

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

pytestmark = pytest.mark.controlplane

SCHEDULER = "odd-replies"
Reply = Callable[[dict[str, Any]], tuple[int, bytes]]


def answered(body: object, status: int = 200) -> Reply:
    return lambda _: (status, body if isinstance(body, bytes) else json.dumps(body).encode())


def scored(score: object, host: str | None = None) -> Reply:
    """Every node, or a `host` that nobody asked about, gets the score."""
    return lambda asked: (
        200,
        json.dumps(
            [{"Host": name, "Score": score} for name in ([host] if host else asked["NodeNames"])]
        ).encode(),
    )


def hangs_up(_: dict[str, Any]) -> tuple[int, bytes]:
    raise ConnectionAbortedError


class ScriptedExtender:
    """An HTTP server that answers as it is told; `slow` verbs answer when it is `released`."""

    def __init__(self) -> None:
        self.port = free_port()
        self.replies: dict[str, Reply] = {}
        self.slow: set[str] = set()
        self.released = threading.Event()
        self.asked: Counter[str] = Counter()
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listen, on the same port each time."""
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                verb = self.path.strip("/")
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                script.asked[verb] += 1
                if verb in script.slow:
                    script.released.wait(60)
                try:
                    status, body = script.replies.get(verb, script.sane(verb))(asked)
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # the scheduler gave up, or we hang up on it

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()

    def stop(self) -> None:
        """Refuse connections."""
        self.released.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def behave(self) -> None:
        """Answer sensibly again."""
        self.released.set()
        self.replies, self.slow, self.released = {}, set(), threading.Event()

    @staticmethod
    def sane(verb: str) -> Reply:
        """The reply that prefers nothing and refuses nothing."""
        if verb == "prioritize":
            return answered([])
        return lambda asked: (200, json.dumps({"NodeNames": asked["NodeNames"]}).encode())


@pytest.fixture(scope="module")
def extender(control_plane: ControlPlane, greensched: GreenSchedProcesses) -> Iterator[Any]:
    """A scripted extender and a scheduler with the chart's configuration that asks it."""
    script = ScriptedExtender()
    script.start()
    rendered = control_plane.helm(
        *["template", "odd", str(CHART), "--namespace", RELEASE],
        *["--show-only", "templates/scheduler/configmap.yaml"],
        *["--set", f"scheduler.extenderUrl=http://127.0.0.1:{script.port}"],
        *["--set", f"scheduler.name={SCHEDULER}", "--set", "extender.powerLimits.enabled=true"],
        *["--set", "extender.replicas=0"],  # what is asked runs elsewhere
    )
    config = yaml.safe_load(rendered)["data"]["config.yaml"]
    assert yaml.safe_load(config)["extenders"][0]["ignorable"] is True
    control_plane.start_scheduler(SCHEDULER, config, control_plane.kubeconfig)
    yield script
    control_plane.stop(SCHEDULER)
    script.stop()


@pytest.mark.parametrize(
    ("verb", "reply"),
    [
        pytest.param("prioritize", answered({"Error": "oh"}, 500), id="prioritize-500"),
        pytest.param("prioritize", answered(b"<html>proxy</html>"), id="prioritize-html"),
        pytest.param("prioritize", answered(b"null"), id="prioritize-null"),
        pytest.param("prioritize", answered({"Host": "a", "Score": 1}), id="prioritize-object"),
        pytest.param("prioritize", scored(7.5), id="prioritize-float-score"),
        pytest.param("prioritize", scored(5, "ghost"), id="prioritize-unknown-node"),
        pytest.param("prioritize", scored(1000), id="prioritize-1000"),
        pytest.param("prioritize", scored(-5), id="prioritize-minus-5"),
        pytest.param("prioritize", hangs_up, id="prioritize-hangs-up"),
        pytest.param("filter", answered({"Error": "oh"}, 500), id="filter-500"),
        pytest.param("filter", answered(b"<html>proxy</html>"), id="filter-html"),
        pytest.param("filter", answered({"Error": "no watts left"}), id="filter-error"),
        pytest.param("filter", answered({"NodeNames": ["ghost"]}), id="filter-unknown-node"),
        pytest.param("filter", hangs_up, id="filter-hangs-up"),
    ],
)
async def test_a_pod_is_placed_whatever_the_extender_replies(
    scene: Scene, extender: ScriptedExtender, verb: str, reply: Reply
) -> None:
    names = await scene.offer(scene.machine(50, 250, count=2))
    extender.behave()
    extender.asked.clear()
    extender.replies[verb] = reply
    assert set(await scene.place("pod", scheduler=SCHEDULER)) <= set(names)
    assert extender.asked[verb] >= 1


@pytest.mark.parametrize("verb", ["prioritize", "filter"])
async def test_a_pod_is_placed_after_the_timeout_when_the_extender_is_too_slow(
    scene: Scene, extender: ScriptedExtender, verb: str
) -> None:
    await scene.offer(scene.machine(50, 250, count=2))
    extender.behave()
    extender.slow.add(verb)
    await scene.place("pod", scheduler=SCHEDULER)
    assert not extender.released.is_set(), "it was placed while the answer was still out"
    extender.behave()


async def test_pods_are_placed_while_the_extender_is_down(
    scene: Scene, extender: ScriptedExtender
) -> None:
    await scene.offer(scene.machine(50, 250, count=2))
    extender.behave()
    extender.stop()
    await scene.place("a", "b", "c", scheduler=SCHEDULER)
    extender.asked.clear()
    extender.start()
    await scene.place("d", scheduler=SCHEDULER)
    assert extender.asked["prioritize"] == 1


async def test_a_score_out_of_range_still_counts_so_ours_must_stay_within_it(
    scene: Scene, extender: ScriptedExtender
) -> None:
    extender.behave()
    loud, other = await scene.offer(
        scene.machine(50, 250), scene.machine(50, 250), scheduler=SCHEDULER
    )
    extender.replies["prioritize"] = answered(
        [{"Host": loud, "Score": 1000}, {"Host": other, "Score": -5}]
    )
    assert await scene.place("a", "b", "c", "d", scheduler=SCHEDULER) == [loud] * 4


async def test_an_empty_filter_reply_is_the_one_that_holds_a_pod_until_the_cluster_changes(
    scene: Scene, extender: ScriptedExtender
) -> None:
    names = await scene.offer(scene.machine(50, 250, count=2))
    extender.behave()
    extender.replies["filter"] = answered({})
    await scene.create("pod", scheduler=SCHEDULER)

    async def complaints() -> list[str]:
        return [event["note"] if "note" in event else event["message"]
                for event in await scene.events("pod")
                if event["reason"] == "FailedScheduling"]  # fmt: skip

    await scene.until(complaints)
    assert "0/2 nodes are available" in (await complaints())[0]
    extender.behave()
    names += await scene.offer(scene.machine(50, 250))  # any event makes the scheduler try again
    assert set(await scene.bound("pod")) <= set(names)
