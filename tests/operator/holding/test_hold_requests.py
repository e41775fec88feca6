from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core import labels
from greensched_operator.holding.hold_requests import HoldRequest, read_hold_request
from greensched_operator.objects.own_annotations import MOST_UNKNOWN, ours

HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOW = at("2026-11-21T10:00:00+00:00")


def hold_request(**said: str) -> HoldRequest:
    return read_hold_request(
        {f"{labels.GROUP}/{name.replace('_', '-')}": value for name, value in said.items()}, NOW
    )


def test_work_that_says_nothing_may_not_wait() -> None:
    assert hold_request() == HoldRequest(arrived_s=NOW)
    assert not hold_request().may_wait


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        pytest.param("6h", 6.0, id="duration-from-creation"),
        pytest.param("1h30m", 1.5, id="two-units"),
        pytest.param("2026-11-21T10:00:01Z", 1 / 3600, id="a-second-ahead"),
        pytest.param("2026-11-22T00:00:00+01:00", 13.0, id="time-with-offset"),
    ],
)
def test_a_deadline_is_a_duration_or_a_time(text: str, hours: float) -> None:
    read = hold_request(deadline=text)
    assert read.faults == ()
    assert read.deadline_s == pytest.approx(NOW + hours * HOUR)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param({"deadline": "tomorrow"}, "neither a duration", id="no-time"),
        pytest.param({"deadline": "9999-12-31T23:59:59-14:00"}, "outside the years", id="too-far"),
        pytest.param({"deadline": "0001-01-01T00:00:00+14:00"}, "outside the years", id="too-old"),
        pytest.param({"deadline": "2026-11-21T10:00:00Z"}, "is in the past", id="just-past"),
        pytest.param({"deadline": "2026-11-21T10:00:00"}, "RFC 3339", id="no-zone"),
        pytest.param({"deadline": "0s"}, "is in the past", id="no-time-at-all"),
        pytest.param({"deadline": "-1h"}, "neither a duration", id="negative"),
        pytest.param({"deadline": "1h", "runtime": "61m"}, "less than the runtime", id="too-soon"),
        pytest.param({"deadline": "1h", "max_delay": "61m"}, "the latest start that", id="delay"),
        pytest.param({"deadline": "1h", "window": "2h"}, "the latest start that", id="window"),
        pytest.param({"max_delay": "soon"}, "max-delay: 'soon' is not a duration", id="no-delay"),
        pytest.param({"runtime": "0s"}, "above zero", id="no-runtime"),
        pytest.param({"checkpointable": "yes"}, '"true" or "false"', id="yes"),
        pytest.param({"run_now": "1"}, '"true" or "false"', id="one"),
        pytest.param({"window": "25:00-02:00"}, "25:00 is not a time of day", id="25-hours"),
        pytest.param({"window": "08:00-08:00"}, "same time", id="empty-window"),
        pytest.param({"window": "01:00-02:00 Mars/Base"}, "not a time zone", id="no-time-zone"),
        pytest.param({"window": "01:00-02:00 ../x"}, "not a time zone", id="a-path"),
    ],
)
def test_what_cannot_be_meant_is_reported(said: dict[str, str], words: str) -> None:
    faults = hold_request(**said).faults
    assert len(faults) == 1
    assert faults[0].startswith(f"{labels.GROUP}/")
    assert words in faults[0]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"deadline": "1h", "runtime": "60m"}, id="runtime-just-fits"),
        pytest.param({"deadline": "1h", "max_delay": "60m"}, id="delay-just-fits"),
        pytest.param({"max_delay": "0s"}, id="may-not-wait"),
        pytest.param({"run_now": "True", "checkpointable": "false"}, id="capitals"),
    ],
)
def test_what_just_fits_is_no_fault(said: dict[str, str]) -> None:
    assert hold_request(**said).faults == ()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("deadlin", labels.DEADLINE, id="a-letter-missing"),
        pytest.param("max_delay", labels.MAX_DELAY, id="underscore"),
        pytest.param("runnow", labels.RUN_NOW, id="no-hyphen"),
        pytest.param("owner-team", None, id="of-others"),
        pytest.param("planned-start", None, id="ours"),
        pytest.param("reference-runtimes", None, id="what-a-cronjob-keeps"),
        pytest.param("runtimes", None, id="what-a-cronjob-kept-in-010"),
    ],
)
def test_what_is_nearly_an_annotation_of_ours_is_reported(name: str, meant: str | None) -> None:
    found = read_hold_request({f"{labels.GROUP}/{name}": "6h"}, NOW)
    expected = f"'{labels.GROUP}/{name}' is not an annotation of GreenSched; did you mean {meant}?"
    assert found.faults == (() if meant is None else (expected,))


@pytest.mark.parametrize(
    ("count", "faults"), [pytest.param(32, 0, id="many"), pytest.param(33, 1, id="too-many")]
)
def test_too_many_unknown_names_are_one_fault(count: int, faults: int) -> None:
    said = {f"{labels.GROUP}/odd-{number}": "" for number in range(count)}
    assert len(read_hold_request(said, NOW).faults) == faults


@given(st.text(min_size=1), st.integers(0, 40))
def test_of_a_workload_so_many_unknown_names_are_kept_and_no_known_one_is_lost(
    text: str, count: int
) -> None:
    unknown = {f"{labels.GROUP}/{number}{text}": text for number in range(count)}
    kept = ours(unknown | {labels.DEADLINE: "6h", f"other.io/{text}": text})
    assert kept.pop(labels.DEADLINE) == "6h"
    assert kept == dict.fromkeys(list(unknown)[: MOST_UNKNOWN + 1], "")


def test_a_name_of_any_length_is_read_at_once() -> None:
    assert read_hold_request({f"{labels.GROUP}/{'deadline' * 100_000}": "6h"}, NOW).faults == ()


def test_the_stricter_of_delay_and_window_counts() -> None:
    assert hold_request(max_delay="2h", window="3h").start_by_s == NOW + 2 * HOUR
    assert hold_request(max_delay="3h", window="2h").start_by_s == NOW + 2 * HOUR


@pytest.mark.parametrize(
    ("window", "opens", "closes"),
    [
        pytest.param("10:00-11:00", None, 1.0, id="opens-now"),
        pytest.param("10:01-11:00", 1 / 60, 1.0, id="opens-in-a-minute"),
        pytest.param("09:00-10:00", 23.0, 24.0, id="closes-now"),
        pytest.param("22:00-12:00", None, 2.0, id="open-since-yesterday"),
        pytest.param("22:00-06:00", 12.0, 20.0, id="over-midnight"),
        pytest.param("22:00-24:00", 12.0, 14.0, id="until-midnight"),
        pytest.param("11:00-12:00 Europe/Berlin", None, 1.0, id="an-hour-east"),
    ],
)
def test_a_window_is_that_of_the_wall_clock(
    window: str, opens: float | None, closes: float
) -> None:
    read = hold_request(window=window)
    assert read.faults == ()
    assert read.start_from_s == (None if opens is None else pytest.approx(NOW + opens * HOUR))
    assert read.start_by_s == pytest.approx(NOW + closes * HOUR)


@pytest.mark.parametrize(
    ("arrived", "hours"),
    [
        pytest.param("2026-03-28T21:00:00+01:00", 7.0, id="spring-night-is-an-hour-short"),
        pytest.param("2026-10-24T21:00:00+02:00", 9.0, id="autumn-night-is-an-hour-long"),
    ],
)
def test_a_window_over_a_change_of_clocks_keeps_its_hours(arrived: str, hours: float) -> None:
    said = {labels.WINDOW: "22:00-06:00 Europe/Berlin"}
    read = read_hold_request(said, at(arrived))
    assert read.start_from_s is not None and read.start_by_s is not None
    assert read.start_by_s - read.start_from_s == hours * HOUR


@given(
    st.dictionaries(
        st.sampled_from([labels.DEADLINE, labels.MAX_DELAY, labels.WINDOW, labels.RUNTIME]),
        st.text(max_size=30)
        | st.sampled_from(["6h", "30m", "22:00-06:00", "2026-11-21T18:00:00Z", "1e9d", "0s"]),
    )
)
def test_whatever_is_written_is_a_hold_request_or_a_fault(said: dict[str, str]) -> None:
    read = read_hold_request(said, NOW)
    if not read.faults:
        for time_s in (read.deadline_s, read.start_by_s):
            assert time_s is None or time_s >= NOW
