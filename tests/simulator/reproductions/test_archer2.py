"""The runtimes and watts that ARCHER2 measured at lower frequencies come out of the cap model."""

import pytest

from greensched_policies.costs.capping import CLOCKED_POWER, cpu_power
from greensched_simulator.reproductions import archer2
from greensched_simulator.reproductions.archer2 import (
    FREQUENCY_1_5,
    FREQUENCY_2_0,
    IDLE_W,
    MEASURED,
    PROGRAMS,
    Program,
)

NODE_W = 480.0  # of VASP and OpenSBLI, for which no watts are published


def test_every_figure_comes_out_within_3_points() -> None:
    lines = archer2.reproduce()
    assert sum(line.is_published for line in lines) == 20
    assert [line for line in lines if not line.is_equal] == []


@pytest.mark.parametrize("case", MEASURED)
def test_1_5_ghz_takes_more_energy_than_2_0_for_each_measured_program(case: str) -> None:
    run = MEASURED[case]
    program = PROGRAMS[run.program]
    least = archer2.energy(program, FREQUENCY_2_0, run.default_w)
    assert archer2.energy(program, FREQUENCY_1_5, run.default_w) > least


def test_without_a_voltage_floor_castep_would_take_less_at_1_5_ghz() -> None:
    """The cube down to 1.5 GHz, and by the other form of the model an exponent of its own."""
    run, program = MEASURED["CASTEP al3x3"], PROGRAMS["CASTEP"]
    at_2_0 = archer2.energy(program, FREQUENCY_2_0, run.default_w)
    cube = program.clocked * FREQUENCY_1_5**3 + 1.0 - program.clocked
    one_exponent = FREQUENCY_1_5 * 0.7**0.38  # 0.74 ** 1.38 is the measured 0.66
    for above in (cube, one_exponent):
        watts = (IDLE_W + (run.default_w - IDLE_W) * above) / run.default_w
        assert watts * archer2.runtime(program, FREQUENCY_1_5) < at_2_0


@pytest.mark.parametrize(("longer", "energy"), [
    pytest.param(1.0 / 0.99, 0.80, id="VASP"),
    pytest.param(1.0 / 0.95, 0.80, id="OpenSBLI"),
])  # fmt: skip
def test_of_two_other_programs_the_published_order_does_not_come_out(
    longer: float, energy: float
) -> None:
    """A fixed sensitivity: what hardly slows at 2.0 GHz must slow more below it than we assume."""
    sensitivity = (longer - 1.0) / (1.0 / FREQUENCY_2_0 - 1.0)
    above = (energy / longer * NODE_W - IDLE_W) / (NODE_W - IDLE_W)
    clocked = (1.0 - above) / (1.0 - float(cpu_power(FREQUENCY_2_0, 1.0)))
    program = Program(sensitivity, clocked)
    assert archer2.energy(program, FREQUENCY_2_0, NODE_W) == pytest.approx(energy)
    at_1_5 = archer2.energy(program, FREQUENCY_1_5, NODE_W)
    assert energy - 0.05 < at_1_5 < energy


def test_the_default_share_of_clocked_watts_is_the_mean_of_the_measured_ones() -> None:
    shares = [program.clocked for program in PROGRAMS.values()]
    assert sum(shares) / len(shares) == pytest.approx(CLOCKED_POWER, abs=0.01)
