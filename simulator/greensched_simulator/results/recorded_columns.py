"""The tables in a run's folder: what each row is, and each column's type, unit and meaning.

What is written is written by these, and docs/run-folder.md is made from them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

TEXT = pa.string()
WORD = pa.dictionary(pa.int32(), pa.string())  # a text that comes again and again
WHOLE = pa.int64()
NUMBER = pa.float64()
CLAIM = pa.bool_()
IN_WORDS = {
    TEXT: "text",
    WORD: "text",
    WHOLE: "whole number",
    NUMBER: "number",
    CLAIM: "true or false",
}
# Of whole numbers, and of these only: how many there are, and which one it is.
COUNT, WHICH = "count", "which"
CURRENCY = "currency"


class Column(NamedTuple):
    """A column of a table; empty where there is nothing to tell."""

    name: str
    kind: pa.DataType
    unit: str  # "" of texts and claims
    meaning: str


class Table(NamedTuple):
    """A table of a run's folder."""

    name: str
    row: str  # what a row stands for
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """Return the columns as Parquet and CSV are written with them."""
        return pa.schema([(column.name, column.kind) for column in self.columns])


_SEED = Column("seed", WHOLE, WHICH, "of the made-up parts of the scenario")
_POLICY = Column("policy", WORD, "", "by its whole name")
_RUN = (_SEED, _POLICY)
_NODE = Column("node", WORD, "", "where it ended, of several workers the first")
_PLACE = (_NODE, Column("zone", WORD, "", "that node's"))
_PARTS = {
    "active": "of work, above idling",
    "idle": "of nodes that were awake, whatever ran",
    "sleep": "of nodes that slept",
    "wake": "of nodes that woke up",
    "transfer": "of moving data to where it is read",
}


def _bill() -> Iterator[Column]:
    for part, meaning in _PARTS.items():
        yield Column(f"energy_{part}_j", NUMBER, "J", f"at the meter, {meaning}")
    for part, meaning in _PARTS.items():
        yield Column(f"cost_{part}", NUMBER, CURRENCY, f"for energy {meaning}")
    for part, meaning in _PARTS.items():
        yield Column(f"carbon_{part}_g", NUMBER, "g", f"operational, location-based, {meaning}")


JOBS = Table("jobs", "a job, which is no replica of a service", (
    *_RUN,
    Column("job", TEXT, "", "its name"),
    Column("arrival_s", NUMBER, "s", "when it was submitted"),
    Column("runtime_s", NUMBER, "s", "true, on the reference core, with one startup and all that "
                                     "is saved in a run without a pause"),
    Column("estimate_s", NUMBER, "s", "what its owner and the policies expect that to be"),
    Column("cpu_cores", NUMBER, "cores", "requested by each worker"),
    Column("memory_bytes", NUMBER, "B", "requested by each worker"),
    Column("gpus", NUMBER, "boards", "requested by each worker, or the part of one"),
    Column("workers", WHOLE, COUNT, "that run at the same time, 1 of an elastic job"),
    Column("deadline_s", NUMBER, "s", "latest end; empty: none"),
    Column("startup_s", NUMBER, "s", "with which each stretch of its run begins"),
    Column("save_every_s", NUMBER, "s", "of work until it saves again; 0: when it is suspended; "
                                        "empty: it cannot be suspended"),
    Column("save_s", NUMBER, "s", "what saving takes"),
    Column("scaling", WHOLE, WHICH, "row of its curve of throughput by workers, from 1; 0: their "
                                    "number stays"),
    Column("data_bytes", NUMBER, "B", "that each worker reads and that lie in a zone"),
    Column("data_zone", WORD, "", "where these lay at first; empty: there are none"),
    Column("ready_s", NUMBER, "s", "when it had arrived and all that it waits for had ended; "
                                   "empty: never"),
    Column("planned_s", NUMBER, "s", "when it was to start; empty: rejected, or never asked"),
    Column("start_s", NUMBER, "s", "when it began; empty: it never ran"),
    Column("end_s", NUMBER, "s", "when it was done; empty: it never ran"),
    Column("suspensions", WHOLE, COUNT, "stretches of its first worker's run beyond the first one"),
    *_PLACE,
    Column("wait_s", NUMBER, "s", "from when it was ready to its start, and while it was "
                                  "suspended; empty: it never ran"),
    Column("slowdown", NUMBER, "1", "bounded: (end − ready) / max(shortest runtime, 10 s), at "
                                    "least 1; empty: it never ran"),
    Column("is_deadline_met", CLAIM, "", "whether it ended by its deadline; empty: it has none"),
))  # fmt: skip
REPLICAS = Table("replicas", "a life of a replica of a service", (
    *_RUN,
    Column("replica", TEXT, "", "its name"),
    Column("service", WORD, "", "whose it is"),
    Column("wanted_s", NUMBER, "s", "from when on it is wanted"),
    Column("leaves_s", NUMBER, "s", "when it is wanted no longer"),
    Column("start_s", NUMBER, "s", "when it began; empty: it never ran"),
    Column("end_s", NUMBER, "s", "when it left its node; empty: it never ran"),
    *_PLACE,
))  # fmt: skip
SERVICES = Table("services", "a slot of a service", (
    *_RUN,
    Column("service", WORD, "", "its name"),
    Column("from_s", NUMBER, "s", "when the slot begins"),
    Column("length_s", NUMBER, "s", "of the slot"),
    Column("requests", NUMBER, "requests", "that came, an expectation"),
    Column("in_time", NUMBER, "requests", "of these answered within the objective, expected"),
    Column("turned_away", NUMBER, "requests", "of these beyond what all replicas could do"),
    Column("wanted", WHOLE, COUNT, "replicas that the autoscaler asked for"),
    Column("ready", NUMBER, "replicas", "that answered, the mean over the slot"),
    Column("p50_s", NUMBER, "s", "median from a request's arrival to its answer; inf: more are "
                                 "turned away; empty: none came"),
    Column("p99_s", NUMBER, "s", "99th percentile of the same"),
))  # fmt: skip
DECISIONS = Table("decisions", "a decision, or a failure, in the order of time", (
    *_RUN,
    Column("at_s", NUMBER, "s", "when"),
    Column("job", TEXT, "", "of which job; empty: of a node"),
    Column("decision", WORD, "", "`reject`, `delay`, `suspend`, `fail`, `wake`, `move`, `place`, "
                                 "`resume`, `sleep` or `cap`"),
    Column("until_s", NUMBER, "s", "of `delay`: to when"),
    Column("node", WORD, "", "of which node, or on which; empty: of none"),
    Column("zone", WORD, "", "that node's"),
    Column("level", NUMBER, "1", "of `cap`: share of full power control, 1 is no cap"),
))  # fmt: skip
NODE_HOURS = Table("node-hours", "an hour of a node; they add up to the bill", (
    *_RUN,
    Column("hour", WHOLE, WHICH, "since the scenario's start, from 0"),
    Column("node", WORD, "", "its name"),
    Column("zone", WORD, "", "its zone"),
    Column("length_s", NUMBER, "s", "of the hour within what is billed"),
    Column("cpu_core_s", NUMBER, "core-s", "requested by what ran"),
    Column("gpu_s", NUMBER, "board-s", "requested by what ran"),
    *_bill(),
))  # fmt: skip
GRID = Table("grid", "a step of a zone's grid, which holds until the zone's next one", (
    _SEED,
    Column("zone", WORD, "", "its name"),
    Column("time_s", NUMBER, "s", "from when it holds"),
    Column("carbon_g_per_kwh", NUMBER, "g/kWh", "true carbon intensity; empty: no data"),
    Column("price_per_mwh", NUMBER, f"{CURRENCY}/MWh", "true price; empty: no data"),
    Column("forecast_carbon_g_per_kwh", NUMBER, "g/kWh", "what policies expect it to be"),
    Column("forecast_price_per_mwh", NUMBER, f"{CURRENCY}/MWh", "what policies expect it to be"),
    Column("marginal_g_per_kwh", NUMBER, "g/kWh", "marginal intensity; empty: nobody told it"),
    Column("pue", NUMBER, "1", "of the zone's nodes by its weather; empty: by none"),
    Column("solar_w", NUMBER, "W", "what panels yield; empty: there are none"),
))  # fmt: skip
OUTCOMES = Table("outcomes", "what a policy came to with a seed", (
    _POLICY,
    _SEED,
    Column("jobs", WHOLE, COUNT, "all"),
    Column("jobs_done", WHOLE, COUNT, "of these ended within what is billed"),
    Column("work_core_h", NUMBER, "core-h", "done, of the reference core"),
    Column("work_gpu_h", NUMBER, "board-h", "done, of boards beside the reference core"),
    Column("deadlines", WHOLE, COUNT, "jobs that have one"),
    Column("deadlines_met", WHOLE, COUNT, "of these"),
    *_bill(),
    Column("wait_mean_s", NUMBER, "s", "of jobs; of those that never ran, until the end"),
    Column("wait_p95_s", NUMBER, "s", "95th percentile of the same"),
    Column("slowdown_mean", NUMBER, "1", "of jobs, bounded"),
    Column("slowdown_p95", NUMBER, "1", "95th percentile of the same"),
    Column("fairness", NUMBER, "1", "Jain's index of the slowdowns; 1: all alike"),
    Column("nodes_used", WHOLE, COUNT, "on which anything ran"),
    Column("billed_s", NUMBER, "s", "the scenario's length, or until the last job ended under any "
                                 "policy"),
    Column("jobs_never_ran", WHOLE, COUNT, "of all jobs"),
    Column("energy_charged_j", NUMBER, "J", "for those, beside the bill"),
    Column("cost_charged", NUMBER, CURRENCY, "for those, beside the bill"),
    Column("carbon_charged_g", NUMBER, "g", "for those, beside the bill"),
    Column("carbon_marginal_g", NUMBER, "g", "of the bill and charges at the marginal intensity, "
                                             "in no total; empty: nobody told that"),
    Column("carbon_embodied_g", NUMBER, "g", "of making the nodes, for the time billed, in no "
                                             "total; empty: nobody told it"),
    Column("solar_used_j", NUMBER, "J", "from panels into the nodes at once"),
    Column("solar_stored_j", NUMBER, "J", "from panels into batteries"),
    Column("solar_curtailed_j", NUMBER, "J", "from panels, that nobody took"),
    Column("battery_given_j", NUMBER, "J", "from batteries into the nodes"),
    Column("battery_lost_j", NUMBER, "J", "of what was stored"),
    Column("battery_left_j", NUMBER, "J", "in batteries at the end"),
    Column("imported_j", NUMBER, "J", "from the grid in zones with panels; 0 without such"),
    Column("requests", NUMBER, "requests", "of services, an expectation; 0 without any"),
    Column("requests_in_time", NUMBER, "requests", "of these within their objectives"),
    Column("requests_turned_away", NUMBER, "requests", "of these beyond what replicas could do"),
    Column("latency_p50_s", NUMBER, "s", "median of all requests; inf: more are turned away; "
                                         "empty: no service"),
    Column("latency_p99_s", NUMBER, "s", "99th percentile of the same"),
    Column("failures", WHOLE, COUNT, "of nodes"),
    Column("jobs_stopped", WHOLE, COUNT, "by these, each time"),
))  # fmt: skip

ALWAYS = (JOBS, DECISIONS, NODE_HOURS, GRID)
OF_SERVICES = (REPLICAS, SERVICES)  # only where there are any
