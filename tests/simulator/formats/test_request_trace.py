import gzip
import os
from pathlib import Path

import pytest

from greensched_core.errors import BadInput
from greensched_simulator.formats.request_trace import RequestLog, read_requests

DATA = Path(os.environ.get("GREENSCHED_DATA") or Path(__file__).parents[4] / "shared" / "data")
AZURE = DATA / "azure-llm-inference-2023" / "AzureLLMInferenceTrace_code.csv.gz"
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
FIRST = "2023-11-16 18:17:03.9799600,4808,10\n"
LAST = "2023-11-16 18:17:05.9799600,110,27\n"


def read(tmp_path: Path, text: str, *, skip_faulty: bool = False) -> RequestLog:
    path = tmp_path / "requests.csv"
    path.write_text(text)
    return read_requests(path, skip_faulty=skip_faulty)


def test_azures_requests_are_seconds_since_the_first_with_their_tokens(tmp_path: Path) -> None:
    log = read(tmp_path, HEAD + FIRST + "2023-11-16 18:17:04.2299600,3180,8\n" + LAST)
    assert log.arrival_s.tolist() == pytest.approx([0.0, 0.25, 2.0], abs=1e-6)
    assert log.prompt_tokens.tolist() == [4808, 3180, 110]
    assert log.generated_tokens.tolist() == [10, 8, 27]
    assert log.span_s == pytest.approx(3.0, abs=1e-5)  # a mean interval longer than to the last
    assert log.notes == ()


def test_a_plain_log_may_tell_arrivals_alone_and_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv.gz"
    path.write_bytes(gzip.compress(b"arrival_s\n5\n5\n9\n"))
    log = read_requests(path)
    assert log.arrival_s.tolist() == [0.0, 0.0, 4.0]
    assert not log.has_tokens
    with_tokens = "arrival_s,prompt_tokens,generated_tokens\n0,10,20\n1,11,21\n"
    assert read(tmp_path, with_tokens).generated_tokens.tolist() == [20, 21]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param("2023-11-16 18:17:04,,8", "row 3: ContextTokens is empty", id="gap"),
        pytest.param(",12,8", "row 3: TIMESTAMP '' is not a time such as", id="no-time"),
        pytest.param("1700158623.97,12,8", "row 3: TIMESTAMP '1700158623.97' is no", id="epoch"),
        pytest.param("2023-11-16 18:17:04,-3,8", "row 3: ContextTokens is -3, less", id="negative"),
        pytest.param("2023-11-16 18:17:04,1.5,8", "row 3: ContextTokens is 1.5, not a", id="unit"),
        pytest.param(
            "2023-11-16 18:17:04,x,8", "row 3: ContextTokens 'x' is not a number", id="word"
        ),
        pytest.param("2023-11-16 18:17:04,12", "row 3: 2 cells, but", id="short"),
        pytest.param(FIRST.strip(), "row 3: the same request as in row 2", id="duplicate"),
        pytest.param("2023-11-16 18:17:03,1,1", "row 3: is earlier than row 2", id="disorder"),
    ],
)
def test_a_row_at_fault_is_reported_and_never_repaired(
    tmp_path: Path, row: str, reason: str
) -> None:
    text = f"{HEAD}{FIRST}{row}\n{LAST}"
    with pytest.raises(BadInput, match=r"has 1 fault; correct it, or leave .*\n  ") as refused:
        read(tmp_path, text)
    assert reason in str(refused.value)
    log = read(tmp_path, text, skip_faulty=True)
    assert log.arrival_s.size == 2
    assert log.notes[0].startswith("1 faulty rows of requests.csv left out, the first: row 3")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("time,tokens\n1,2\n", "lacks the columns arrival_s", id="format"),
        pytest.param("TIMESTAMP,ContextTokens\nx,2\n", "lacks the columns Generated", id="column"),
        pytest.param(
            "arrival_s,prompt_tokens\n1,2\n",
            "has a column prompt_tokens but no generated_tokens: add it",
            id="half",
        ),
        pytest.param("arrival_s\n1\n", "has no two requests at different times", id="one"),
        pytest.param("arrival_s\n1\n1\n", "has no two requests at different times", id="at-once"),
    ],
)
def test_what_is_no_log_of_requests_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        read(tmp_path, text)


def test_a_long_silence_is_reported_by_its_row_and_stays(tmp_path: Path) -> None:
    rows = [*range(400), 8000]
    log = read(tmp_path, "arrival_s\n" + "".join(f"{row}\n" for row in rows))
    (note,) = log.notes
    assert note.startswith("requests.csv has no request for 2h6m before row 402")
    assert log.arrival_s[-1] == 8000.0


@pytest.mark.skipif(not AZURE.is_file(), reason="Azure's trace is not on this machine")
def test_azures_published_code_trace_is_read_in_full() -> None:
    log = read_requests(AZURE)
    assert log.arrival_s.size == 8_819
    assert log.prompt_tokens.mean() == pytest.approx(2047.848, abs=0.001)
    assert log.generated_tokens.mean() == pytest.approx(27.88, abs=0.01)
    assert log.arrival_s[-1] == pytest.approx(3435.948, abs=0.001)
