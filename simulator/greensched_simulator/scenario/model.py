"""The content of a scenario file. A name in the file has no unit if its value carries one."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from greensched_policies.costs.capping import FREQUENCY_SENSITIVITIES
from greensched_simulator.policy import Able
from greensched_simulator.scenario.assumptions import Assumptions, ScenarioWeights
from greensched_simulator.scenario.cluster import Cluster
from greensched_simulator.scenario.fields import (
    Bytes,
    Cores,
    Duration,
    Moment,
    PolicyFile,
    ScenarioPart,
    SeriesFile,
    Wait,
    one_source,
)
from greensched_simulator.scenario.language import Training
from greensched_simulator.scenario.network import DataKind, Network
from greensched_simulator.scenario.services import Service
from greensched_simulator.scenario.site import Site
from greensched_simulator.scenario.trace_workload import TraceWorkload

CURRENCY = r"^[A-Z]{3}$"
PRICE_UNIT = r"^[A-Z]{3}/[Mk]Wh$"
_TAGS = frozenset({"from file", "constant value", "synthetic shape", "one for all", "by runtime"})
G_PER_KWH = {"g/kWh": 1.0, "kg/MWh": 1.0, "lb/MWh": 0.45359237}


def place_of(error_at: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the place of a pydantic error in the file, without the tags of unions."""
    return tuple(at for at in error_at if at not in _TAGS)


class Shape(ScenarioPart):
    """A synthetic day in quarter hours, drawn by the seed."""

    shape: Literal["solar", "hydro", "coal"] = Field(
        description="solar is clean and cheap at noon, hydro is always clean, coal is always dirty."
    )
    noon: Duration = Field(
        default=43_200.0, lt=86_400, description="Time of the zone's noon, counted from 0 h UTC."
    )


class CarbonFile(SeriesFile):
    """Carbon intensity in a file."""

    unit: Literal["g/kWh", "kg/MWh", "lb/MWh"] = Field(default="g/kWh", description="Unit.")


class CarbonConstant(ScenarioPart):
    """One carbon intensity for all time."""

    constant: float = Field(ge=0, le=2000, description="Carbon intensity in g/kWh.")


class PriceFile(SeriesFile):
    """Prices in a file."""

    unit: str = Field(pattern=PRICE_UNIT, description="Currency per MWh or kWh, such as EUR/MWh.")


class PriceConstant(ScenarioPart):
    """One price for all time."""

    constant: float = Field(ge=-1e6, le=1e6, description="Price in `unit`.")
    unit: str = Field(pattern=PRICE_UNIT, description="Currency per MWh or kWh, such as EUR/MWh.")


_ONE_SOURCE = one_source("{shape: solar}")
Carbon = Annotated[
    Annotated[CarbonFile, Tag("from file")]
    | Annotated[CarbonConstant, Tag("constant value")]
    | Annotated[Shape, Tag("synthetic shape")],
    _ONE_SOURCE,
]
Price = Annotated[
    Annotated[PriceFile, Tag("from file")]
    | Annotated[PriceConstant, Tag("constant value")]
    | Annotated[Shape, Tag("synthetic shape")],
    _ONE_SOURCE,
]


class Grid(ScenarioPart):
    """Carbon and price of a zone's grid."""

    carbon: Carbon = Field(description="Carbon intensity of consumption.")
    price: Price = Field(description="Price of energy.")
    marginal: Carbon | None = Field(
        default=None,
        description="Carbon intensity of the plants that follow demand, for a second bill; no "
        "decision uses it. Give it to all zones or to none.",
    )
    forecast_error: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Relative standard deviation of a forecast 24 h ahead; it grows with the "
        "square root of the lead time. 0: forecasts are the truth.",
    )


def _gpus(gpus: float) -> float:
    if gpus > 1.0 and gpus != int(gpus):
        raise ValueError("a part can be requested only of a single GPU")
    return gpus


class Generator(ScenarioPart):
    """Jobs drawn by the seed: a Poisson process with a daily wave, log-normal runtimes."""

    jobs: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="Number of jobs; default: as many as reach the `load`.",
    )
    daily_swing: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Daily wave of arrivals: their rate peaks at (1 + this) times its mean.",
    )
    peak: Duration = Field(
        default=50_400.0,
        lt=86_400,
        description="Time of day with the most arrivals, counted from 0 h UTC.",
    )
    runtime_median: Duration = Field(
        default=5_400.0, gt=0, description="Median runtime on the reference core."
    )
    runtime_sigma: float = Field(
        default=1.2, ge=0, le=4, description="Standard deviation of the runtime's logarithm."
    )
    runtime_shortest: Duration = Field(
        default=30.0, gt=0, description="Shorter runtimes are raised to this."
    )
    runtime_longest: Duration = Field(
        default=86_400.0, gt=0, description="Longer runtimes are cut to this."
    )
    cpu_cores: list[Cores] = Field(
        default=[1.0, 2.0, 2.0, 4.0, 4.0, 8.0],
        min_length=1,
        description="Possible CPU cores of a job (with GPUs: per GPU); all equally likely.",
    )
    memory_per_core: list[Bytes] = Field(
        default=[2 * 2.0**30, 4 * 2.0**30, 4 * 2.0**30, 8 * 2.0**30],
        min_length=1,
        description="Possible memory per CPU core; each job gets one size, all equally likely.",
    )
    gpu_share: float = Field(default=0.0, ge=0, le=1, description="Share of jobs with GPUs.")
    gpus: list[Annotated[float, Field(gt=0, le=64), AfterValidator(_gpus)]] = Field(
        default=[1, 1, 1, 1, 2, 4],
        min_length=1,
        description="Possible numbers of GPUs of a job that uses GPUs; one is drawn for each, all "
        "equally likely. Less than 1 is a part of one GPU.",
    )
    workers: list[Annotated[int, Field(ge=1, le=10_000)]] = Field(
        default=[1],
        min_length=1,
        description="Possible numbers of workers of a job; one is drawn for each, all equally "
        "likely. All workers run at the same time, and each requests what the job requests.",
    )
    stages: list[Annotated[int, Field(ge=1, le=1000)]] = Field(
        default=[1],
        min_length=1,
        description="Possible numbers of stages of a job; one is drawn for each, all equally "
        "likely. A stage begins when all tasks of the previous one have ended. Each task counts "
        "as a job.",
    )
    stage_tasks: list[Annotated[int, Field(ge=1, le=1000)]] = Field(
        default=[1],
        min_length=1,
        description="Possible numbers of tasks in a stage; one is drawn for each, all equally "
        "likely.",
    )


class SlackClass(ScenarioPart):
    """How long jobs of one class of runtimes may wait."""

    shorter_than: Duration | None = Field(
        default=None,
        gt=0,
        description="Applies to jobs with a shorter runtime; without it, to all other jobs.",
    )
    may_wait: Wait = Field(description="A duration, or `none` for jobs without a deadline.")


def _rising(classes: list[SlackClass]) -> list[SlackClass]:
    limits = [each.shorter_than for each in classes]
    if not limits or None in limits[:-1] or limits[-1] is not None:
        raise ValueError("each class but the last needs shorter_than, and the last has none")
    if limits[:-1] != sorted(set(limits[:-1]), key=lambda limit: limit or 0.0):
        raise ValueError("shorter_than must grow from class to class")
    return classes


Slack = Annotated[
    Annotated[Wait, Tag("one for all")]
    | Annotated[list[SlackClass], AfterValidator(_rising), Tag("by runtime")],
    Discriminator(lambda value: "by runtime" if isinstance(value, list) else "one for all"),
]


class Suspend(ScenarioPart):
    """Which jobs can be suspended, and the time of startup and saving, at their run's power.

    A run without a pause takes the job's runtime, which includes one startup and all saving.
    """

    share: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the jobs that can be suspended, drawn by the seed.",
    )
    longer_than: Duration = Field(
        default=0.0, description="Only jobs with a longer runtime on the reference core."
    )
    startup: Duration = Field(
        default=0.0, description="Time that a job needs to start up, also each time it is resumed."
    )
    save_every: Duration = Field(
        default=0.0,
        description="Work between two checkpoints; a suspended job first runs to its next one. "
        "0: it saves its work when it is suspended.",
    )
    saving: Duration = Field(default=0.0, description="Time that a checkpoint takes.")


def _rises_from_one(throughput: list[float]) -> list[float]:
    if throughput[0] != 1.0 or any(more < less for less, more in pairwise(throughput)):
        raise ValueError("is not a curve of throughput: it must begin with 1 and never fall")
    return throughput


class Elastic(ScenarioPart):
    """Jobs whose number of workers may differ by run segment; each has the job's request."""

    throughput: Annotated[
        list[Annotated[float, Field(gt=0, le=1e4)]], AfterValidator(_rises_from_one)
    ] = Field(
        min_length=2,
        max_length=64,
        description="Throughput of 1, 2, 3 … workers relative to one: begins with 1 and never "
        "falls.",
    )
    share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Share of the jobs that can be suspended and have one worker, drawn by the "
        "seed.",
    )


class ScenarioWorkload(ScenarioPart):
    """The jobs, from a trace or generated, and how long they may wait."""

    trace: TraceWorkload | None = Field(
        default=None, description="Published trace; excludes `generator`."
    )
    generator: Generator | None = Field(default=None, description="Drawn jobs; excludes `trace`.")
    trainings: list[Training] = Field(
        default=[],
        description="Trainings of language models, with or without jobs of a trace or generator.",
    )
    load: float | None = Field(
        default=None,
        gt=0,
        le=10,
        description="Mean share of the cluster's scarcest resource that is requested. A trace's "
        "arrivals are compressed or stretched to reach it; runtimes stay.",
    )
    estimate_error: float = Field(
        default=0.0,
        ge=0,
        le=3,
        description="How far estimates lie from true runtimes: the standard deviation of the "
        "logarithm of estimate over runtime. Does not apply to jobs whose trace gives an estimate.",
    )
    slack: Slack = Field(
        default=float("inf"),
        description="How long jobs may wait: one duration, `none` for no deadline, or a list by "
        "runtime. Does not apply to jobs whose trace gives a deadline.",
    )
    deadline_runtime_factor: float = Field(
        default=1.0,
        ge=1,
        le=100,
        description="A job's deadline is its arrival + this factor · its runtime on the reference "
        "core + slack.",
    )
    suspend: Suspend | None = Field(
        default=None, description="Which jobs can be suspended and resumed; without it none can."
    )
    elastic: list[Elastic] = Field(
        default=[],
        description="Kinds of jobs whose number of workers a policy may change; a job is of at "
        "most one kind.",
    )
    frequency_sensitivity: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=FREQUENCY_SENSITIVITIES.tolist(),
        min_length=1,
        description="Share of a job's run that scales with CPU frequency, each value equally "
        "likely. The default is what nine programs measured on ARCHER2. Matters only under power "
        "caps.",
    )
    gpu_ratio: list[Annotated[float, Field(ge=0, le=1)]] | None = Field(
        default=None,
        min_length=1,
        description="Share of a GPU's range of power that a job draws, each value equally likely; "
        "default: `assumptions.gpu_ratio` for all. Does not apply to jobs whose trace or training "
        "gives it.",
    )
    data: list[DataKind] = Field(
        default=[], description="Kinds of data that jobs read; a job reads at most one kind."
    )
    skip_unplaceable: bool = Field(
        default=False, description="Leave out jobs that fit no node instead of refusing them."
    )


class Scenario(ScenarioPart):
    """A cluster, its grids and its work: all input of a run except the policy."""

    name: str = Field(
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,62}[a-z0-9])?$",
        description="Lower-case letters, digits, - and dots; begins the run folder's name.",
    )
    description: str = Field(default="", description="Purpose, in a sentence or two.")
    seed: int = Field(default=1, ge=0, le=2**63 - 1, description="Random seed.")
    start_s: Moment = Field(alias="start", description="First moment of the scenario, RFC 3339.")
    length_s: Duration = Field(
        alias="length", gt=0, description="Time within which jobs arrive; they run to their end."
    )
    currency: str = Field(default="EUR", pattern=CURRENCY, description="ISO 4217, for all results.")
    exchange_rates: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default={},
        description="Value of one unit of each other currency in `currency`, such as USD: 0.92.",
    )
    cluster: Cluster = Field(description="Groups of nodes.")
    grids: dict[str, Grid] = Field(min_length=1, description="Grid of each zone, by its name.")
    sites: dict[str, Site] = Field(
        default={}, description="Weather, panels and battery of a zone, by the zone's name."
    )
    workload: ScenarioWorkload = Field(description="The jobs.")
    network: Network = Field(
        default=Network(), description="Network that moves jobs' data between zones."
    )
    services: list[Service] = Field(
        default=[], description="Interactive services that run on the same nodes as the jobs."
    )
    weights: ScenarioWeights = Field(
        default=ScenarioWeights(), description="Weights for policies that use them."
    )
    assumptions: Assumptions = Field(
        default=Assumptions(), description="Assumptions that replace measurements."
    )
    green_policy: PolicyFile | None = Field(
        default=None,
        description="A file with a GreenPolicy, as users apply it, for the policy `green-policy`, "
        "which holds jobs as the operator does.",
    )

    @property
    def able(self) -> Able:
        """Return the optional actions that have an effect in this scenario."""
        workload = self.workload
        return Able(
            self.cluster.nodes_sleep,
            workload.suspend is not None,
            bool(workload.elastic),
            self.green_policy is not None,
        )
