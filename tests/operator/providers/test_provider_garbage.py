"""Whatever comes over a wire: an answer that can be used, or a fault; never anything else.

The providers are those of the catalogue. What each of them reads of the stored answers is found by
trying them, also one after the other, as after a login.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import Answer, Conversation, ProviderFault, Reply
from greensched_operator.providers.catalogue import ALL, Provider, parse_provider
from greensched_operator.providers.file import File
from greensched_operator.providers.json_endpoint import JsonEndpoint
from greensched_operator.providers.secret_keys import TokenRef
from greensched_operator.providers.static import Static

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "providers"
NOW = 1_768_824_600.0
STORED = yaml.safe_load((GOLDEN / "entries.yaml").read_text(encoding="utf-8"))
MOST_REQUESTS = 10
NOT_OVER_A_WIRE = (File, Static)

Golden = Callable[[str], bytes]
Bodies = list[bytes]
ReadBy = Callable[[str], list[Bodies]]
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["2026-01-19T12:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
AT_RANDOM = st.binary(max_size=300) | st.binary(max_size=300).map(b"PK\x03\x04".__add__)


class Asker(NamedTuple):
    """An entry of a GridSignal, and the signal that it is asked for."""

    title: str
    provider: Provider
    kind: SignalKind

    def ask(self) -> Conversation:
        """Begin a conversation."""
        provider = self.provider
        assert not isinstance(provider, NOT_OVER_A_WIRE)
        secrets = tuple("secret" for _ in provider.secret_keys())
        if isinstance(provider, JsonEndpoint):
            return provider.ask_for(self.kind, secrets)
        return provider.ask(NOW, secrets)

    def answer(self, bodies: Bodies) -> tuple[Answer, int]:
        """Return the answer out of these bodies, the last one repeated, and how many it took."""
        conversation, taken = self.ask(), 0
        try:
            next(conversation)
            while taken < MOST_REQUESTS:
                taken += 1
                conversation.send(Reply(200, bodies[min(taken, len(bodies)) - 1]))
        except StopIteration as returned:
            return returned.value, taken
        raise AssertionError(f"{self.title} asks without end")


def sample(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """Return a value of a JSON schema: of objects the required fields alone."""
    if "$ref" in schema:
        return sample(known[schema["$ref"].rpartition("/")[2]], known)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: sample(schema["properties"][name], known) for name in schema["required"]}
    made = {"string": "x" * max(1, schema.get("minLength", 1)), "array": [], "boolean": False}
    return made.get(schema.get("type", ""), schema.get("minimum", 1))


def made_up(provider: type[Any]) -> Any:
    """Return an entry of a provider with made-up values of the fields that have no default."""
    (schema,), known = msgspec.json.schema_components([provider])
    return sample(schema, known)


def askers(providers: tuple[type[Provider], ...]) -> Iterator[Asker]:
    """Return each provider that asks over a wire, with each of its entries and signals."""
    for provider in providers:
        if provider in NOT_OVER_A_WIRE:
            continue
        own = [entry for entry in STORED if provider.name in entry]
        for number, entry in zip(count(1), own or [{provider.name: made_up(provider)}]):
            for kind in provider.serves:
                title = f"{provider.name}-{kind}-{number}"
                yield Asker(title, parse_provider(entry, kind), kind)


ASKERS = {asker.title: asker for asker in askers(ALL)}


@pytest.fixture(scope="session")
def read_by(golden: Golden) -> ReadBy:
    """Return a function that finds the stored answers that are read, alone or in pairs."""
    names = [path.name for path in sorted(GOLDEN.iterdir()) if path.suffix not in {".md", ".yaml"}]
    packed = [f"{path.stem}.zip" for path in GOLDEN.glob("*.csv")]
    bodies = [golden(name) for name in [*names, *packed]]

    @cache
    def found(title: str) -> list[Bodies]:
        alone = [[body] for body in bodies if takes(ASKERS[title], [body])]
        return alone or [[a, b] for a in bodies for b in bodies if takes(ASKERS[title], [a, b])]

    return found


def takes(asker: Asker, bodies: Bodies) -> bool:
    """Tell whether these bodies, and no more, are an answer."""
    try:
        return asker.answer(bodies)[1] == len(bodies)
    except ProviderFault:
        return False


def usable_or_fault(asker: Asker, bodies: Bodies) -> None:
    """Fail unless the bodies give an answer that holds its promises, or a ProviderFault."""
    try:
        answer, _ = asker.answer(bodies)
    except ProviderFault as fault:
        assert str(fault)
        assert len(str(fault)) < 500
        return
    starts = [slot.start for slot in answer.slots]
    known = [slot.value for slot in answer.slots if slot.value is not None]
    assert starts == sorted(set(starts))
    assert starts[-1] < answer.end < math.inf
    assert known
    assert all(math.isfinite(value) for value in known)
    if answer.unit == "g/kWh":
        assert all(0 <= value <= 10_000 for value in known)
        assert any(known), "zeros alone are no data"


def draw_place(data: st.DataObject, stored: list[Bodies]) -> tuple[Bodies, int]:
    """Return stored answers, if any are read, and the place of the one to be spoilt."""
    bodies = data.draw(st.sampled_from(stored)) if stored else [b""]
    return list(bodies), data.draw(st.integers(0, len(bodies) - 1))


@pytest.mark.parametrize("title", ASKERS)
@given(data=st.data())
def test_bytes_at_random_never_surprise(title: str, read_by: ReadBy, data: st.DataObject) -> None:
    bodies, place = draw_place(data, read_by(title))
    bodies[place] = data.draw(AT_RANDOM)
    usable_or_fault(ASKERS[title], bodies)


@pytest.mark.parametrize("title", ASKERS)
@given(data=st.data(), cut=st.integers(0, 5_000), put=st.binary(max_size=4))
def test_a_cut_or_bent_answer_never_surprises(
    title: str, read_by: ReadBy, data: st.DataObject, cut: int, put: bytes
) -> None:
    bodies, place = draw_place(data, read_by(title))
    whole = bodies[place]
    at = cut % max(1, len(whole))
    for spoilt in (whole[:at], whole[:at] + put + whole[at + len(put) :]):
        bodies[place] = spoilt
        usable_or_fault(ASKERS[title], bodies)


@pytest.mark.parametrize("title", ASKERS)
@given(data=st.data())
def test_a_value_of_another_kind_anywhere_never_surprises(
    title: str, read_by: ReadBy, data: st.DataObject
) -> None:
    bodies, at = draw_place(data, read_by(title))
    if not bodies[at].startswith((b"{", b"[")):
        bodies[at] = json.dumps(data.draw(ANYTHING)).encode()
        usable_or_fault(ASKERS[title], bodies)
        return
    whole: Any = json.loads(bodies[at])
    place: Any = whole
    holder: Any = None
    key: Any = None
    while isinstance(place, dict | list) and place and (holder is None or data.draw(st.booleans())):
        holder = place
        key = data.draw(st.sampled_from(
            sorted(place) if isinstance(place, dict) else range(len(place))
        ))  # fmt: skip
        place = place[key]
    assert holder is not None
    holder[key] = data.draw(ANYTHING)
    bodies[at] = json.dumps(whole).encode()
    usable_or_fault(ASKERS[title], bodies)


def test_every_provider_of_the_catalogue_is_tried_and_reads_what_is_stored_for_it(
    read_by: ReadBy,
) -> None:
    tried = {asker.provider.name for asker in ASKERS.values()}
    assert tried == {each.name for each in ALL} - {each.name for each in NOT_OVER_A_WIRE}
    stored_for = {name for entry in STORED for name in entry} - {"tariff"}  # which asks nobody
    unread = {asker.provider.name for title, asker in ASKERS.items() if not read_by(title)}
    assert unread & stored_for == set()


def test_a_provider_that_is_new_in_the_catalogue_is_tried_with_made_up_values() -> None:
    class New(msgspec.Struct, frozen=True, rename="camel"):
        name: ClassVar[str] = "new"
        zone_name: Annotated[str, msgspec.Meta(min_length=2)]
        secret_ref: TokenRef
        market: Literal["day-ahead", "spot"]
        area: Annotated[int, msgspec.Meta(ge=3)]
        currency: str = "EUR"

    assert made_up(New) == {
        "zoneName": "xx", "secretRef": {"name": "x"}, "market": "day-ahead", "area": 3,
    }  # fmt: skip
