import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_simulator.formats.synthetic import SyntheticShape, synthetic_trace
from greensched_simulator.formats.workload import Task, Trace, compressed, sampled

seeds = st.integers(0, 2**32)
counts = st.integers(2, 40)


def concurrency(trace: Trace) -> list[int]:
    """How many tasks run when each arrives."""
    return [
        sum(
            other.arrival_s <= task.arrival_s < other.arrival_s + other.runtime_s
            for other in trace.tasks
        )
        for task in trace.tasks
    ]


@given(counts, seeds, st.floats(1, 1e6))
def test_the_same_seed_gives_the_same_tasks(count: int, seed: int, span_s: float) -> None:
    assert synthetic_trace(count, span_s, seed) == synthetic_trace(count, span_s, seed)


@given(counts, seeds, st.floats(1, 1e6))
def test_made_up_tasks_are_possible_and_in_order(count: int, seed: int, span_s: float) -> None:
    tasks = synthetic_trace(count, span_s, seed).tasks
    assert len({task.name for task in tasks}) == count
    assert [task.arrival_s for task in tasks] == sorted(task.arrival_s for task in tasks)
    for task in tasks:
        assert 0 <= task.arrival_s <= span_s
        assert task.runtime_s > 0 and task.cpu_cores > 0 and task.memory_bytes > 0


def test_the_wave_peaks_in_the_afternoon() -> None:
    tasks = synthetic_trace(4_000, 86_400, seed=1).tasks
    afternoon = sum(8 * 3600 <= task.arrival_s < 20 * 3600 for task in tasks)
    assert afternoon / len(tasks) == pytest.approx(0.5 + 0.5 / 3.1416, abs=0.03)


def test_the_share_of_gpu_tasks_is_what_was_asked_for() -> None:
    tasks = synthetic_trace(4_000, 86_400, seed=1, shape=SyntheticShape(gpu_share=0.4)).tasks
    assert sum(task.gpus > 0 for task in tasks) / len(tasks) == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize(
    ("count", "span_s", "share"),
    [(0, 1.0, 0.5), (1, 0.0, 0.5), (1, 1.0, 1.5), (1, float("nan"), 0)],
)
def test_impossible_shapes_are_refused(count: int, span_s: float, share: float) -> None:
    with pytest.raises(BadInput):
        synthetic_trace(count, span_s, seed=1, shape=SyntheticShape(gpu_share=share))


@given(counts, seeds, st.floats(0.1, 1e5))
def test_compression_hits_the_span_with_one_factor(count: int, seed: int, span_s: float) -> None:
    trace = synthetic_trace(count, 86_400, seed)
    result = compressed(trace, span_s)
    assert result.trace.span_s == pytest.approx(span_s)
    assert result.trace.tasks[0].arrival_s == 0
    for before, after in zip(trace.tasks, result.trace.tasks, strict=True):
        assert after.runtime_s == pytest.approx(before.runtime_s * result.factor)


def test_compression_keeps_how_many_tasks_run_at_once() -> None:
    trace = synthetic_trace(200, 86_400, seed=7)
    assert concurrency(compressed(trace, 60).trace) == concurrency(trace)


def test_tasks_that_arrive_at_once_cannot_be_compressed() -> None:
    task = Task("a", 5, 1, 1, 1)
    with pytest.raises(BadInput, match="no span"):
        compressed(Trace((task, task), "twins"), 10)
    with pytest.raises(BadInput, match="positive span"):
        compressed(synthetic_trace(5, 10, 1), 0)


@given(counts, st.integers(1, 60), seeds)
def test_a_sample_keeps_order_and_draws_no_task_twice(count: int, wanted: int, seed: int) -> None:
    trace = synthetic_trace(count, 1_000, 3)
    drawn = sampled(trace, wanted, seed).tasks
    assert len(drawn) == min(count, wanted)
    assert set(drawn) <= set(trace.tasks) and len(set(drawn)) == len(drawn)
    assert [task.arrival_s for task in drawn] == sorted(task.arrival_s for task in drawn)
