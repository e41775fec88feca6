"""The tables in a run's folder: the meaning of rows, and each column's type, unit and meaning.

Files are written by these definitions, and docs/run-folder.md is generated from them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

TEXT = pa.string()
WORD = pa.dictionary(pa.int32(), pa.string())  # a text with few different values
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
# Units of whole numbers only: a count, and an index.
COUNT, WHICH = "count", "which"
CURRENCY = "currency"


class Column(NamedTuple):
    """A column of a table; its cells are empty where there is no value."""

    name: str
    kind: pa.DataType
    unit: str  # "" for texts and claims
    meaning: str


class RecordedTable(NamedTuple):
    """A table of a run's folder."""

    name: str
    row: str  # the meaning of a row
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """Return the schema with which Parquet and CSV are written."""
        return pa.schema([(column.name, column.kind) for column in self.columns])


_SEED = Column("seed", WHOLE, WHICH, "random seed of the generated parts of the scenario")
_POLICY = Column("policy", WORD, "", "full name of the policy")
_RUN = (_SEED, _POLICY)
_NODE = Column("node", WORD, "", "node on which it ended; of several workers, the first one's")
_PLACE = (_NODE, Column("zone", WORD, "", "grid zone of that node"))
_PARTS = {
    "active": "work, above idle",
    "idle": "idle power of awake nodes",
    "sleep": "nodes that sleep",
    "wake": "nodes that wake up",
    "transfer": "moving data to where it is read",
}


def _bill() -> Iterator[Column]:
    for part, meaning in _PARTS.items():
        yield Column(f"energy_{part}_j", NUMBER, "J", f"energy at the meter: {meaning}")
    for part, meaning in _PARTS.items():
        yield Column(f"cost_{part}", NUMBER, CURRENCY, f"cost of energy: {meaning}")
    for part, meaning in _PARTS.items():
        yield Column(f"carbon_{part}_g", NUMBER, "g", f"operational, location-based: {meaning}")


def _utilisation() -> Iterator[Column]:
    for name, meaning in (
        ("cpu", "CPU cores of all nodes"),
        ("memory", "memory of all nodes"),
        ("gpu", "GPUs of all nodes"),
    ):
        without = "; 0 without GPUs" if name == "gpu" else ""
        yield Column(f"{name}_utilisation_mean", NUMBER, "1", f"share of the {meaning} that was "
                     f"requested by what ran, mean over the billed time{without}")  # fmt: skip
        yield Column(f"{name}_utilisation_peak", NUMBER, "1", f"highest share at any time{without}")


JOBS_TABLE = RecordedTable("jobs", "a job; replicas of services have a table of their own", (
    *_RUN,
    Column("job", TEXT, "", "name of the job"),
    Column("arrival_s", NUMBER, "s", "time at which it was submitted"),
    Column("runtime_s", NUMBER, "s", "true runtime on the reference core, with one startup and "
                                     "all saving in a run without a pause"),
    Column("estimate_s", NUMBER, "s", "runtime that its owner and the policies expect"),
    Column("cpu_cores", NUMBER, "cores", "CPU cores that each worker requests"),
    Column("memory_bytes", NUMBER, "B", "memory that each worker requests"),
    Column("gpus", NUMBER, "GPUs", "GPUs that each worker requests; a fraction shares one"),
    Column("gpu_ratio", NUMBER, "1", "share of their range of power that its GPUs draw"),
    Column("workers", WHOLE, COUNT, "workers that run at the same time; 1 for an elastic job"),
    Column("deadline_s", NUMBER, "s", "deadline of the job; empty: none"),
    Column("startup_s", NUMBER, "s", "startup at the beginning of each run segment"),
    Column("save_every_s", NUMBER, "s", "work between one saving and the next; 0: it saves when "
                                        "it is suspended; empty: it cannot be suspended"),
    Column("save_s", NUMBER, "s", "time that saving takes"),
    Column("scaling", WHOLE, WHICH, "row of its curve of throughput by workers, from 1; 0: the "
                                    "number of workers is fixed"),
    Column("frequency_sensitivity", NUMBER, "1", "share of its run that scales with CPU frequency"),
    Column("data_bytes", NUMBER, "B", "data in a zone that each worker reads"),
    Column("data_zone", WORD, "", "zone in which the data lay at first; empty: no data"),
    Column("ready_s", NUMBER, "s", "time at which it had arrived and all jobs that it waits for "
                                   "had ended; empty: never"),
    Column("planned_s", NUMBER, "s", "planned start; empty: rejected, or never planned"),
    Column("start_s", NUMBER, "s", "time at which it began; empty: it never ran"),
    Column("end_s", NUMBER, "s", "time at which it ended; empty: it never ran"),
    Column("suspensions", WHOLE, COUNT, "run segments of its first worker beyond the first one"),
    *_PLACE,
    Column("wait_s", NUMBER, "s", "time from ready to start, and time suspended; empty: it never "
                                  "ran"),
    Column("slowdown", NUMBER, "1", "bounded: (end − ready) / max(shortest runtime, 10 s), at "
                                    "least 1; empty: it never ran"),
    Column("is_deadline_met", CLAIM, "", "whether it ended by its deadline; empty: it has none"),
))  # fmt: skip
REPLICAS = RecordedTable("replicas", "one life of a replica of a service", (
    *_RUN,
    Column("replica", TEXT, "", "name of the replica"),
    Column("service", WORD, "", "name of its service"),
    Column("wanted_s", NUMBER, "s", "time from which it is wanted"),
    Column("leaves_s", NUMBER, "s", "time from which it is no longer wanted"),
    Column("start_s", NUMBER, "s", "time at which it began; empty: it never ran"),
    Column("end_s", NUMBER, "s", "time at which it left its node; empty: it never ran"),
    *_PLACE,
))  # fmt: skip
SERVICES = RecordedTable("services", "one time slot of a service", (
    *_RUN,
    Column("service", WORD, "", "name of the service"),
    Column("from_s", NUMBER, "s", "start of the slot"),
    Column("length_s", NUMBER, "s", "length of the slot"),
    Column("requests", NUMBER, "requests", "expected requests in the slot"),
    Column("in_time", NUMBER, "requests", "expected requests answered within the objective"),
    Column("turned_away", NUMBER, "requests", "expected requests beyond what all replicas can "
                                              "answer"),
    Column("wanted", WHOLE, COUNT, "replicas that the autoscaler asked for"),
    Column("ready", NUMBER, "replicas", "replicas that answered, mean over the slot"),
    Column("cpu_use", NUMBER, "1", "CPU used per CPU requested by the replicas that answered, mean "
                                   "over the slot; empty: none did"),
    Column("p50_s", NUMBER, "s", "median time from a request's arrival to its answer; inf: half "
                                 "of them or more are turned away; empty: no requests"),
    Column("p99_s", NUMBER, "s", "99th percentile of the same"),
))  # fmt: skip
DECISIONS_TABLE = RecordedTable("decisions", "a decision or a failure, in the order of time", (
    *_RUN,
    Column("at_s", NUMBER, "s", "time of the decision or failure"),
    Column("job", TEXT, "", "job that it is about; empty: it is about a node"),
    Column("decision", WORD, "", "`reject`, `delay`, `suspend`, `fail`, `wake`, `move`, `place`, "
                                 "`resume`, `sleep` or `cap`"),
    Column("until_s", NUMBER, "s", "planned start, for `delay` only"),
    Column("node", WORD, "", "node that it is about, or on which the job runs; empty: none"),
    Column("zone", WORD, "", "grid zone of that node"),
    Column("cpu_frequency", NUMBER, "1", "of `cap`: share of the highest frequency at which the "
                                         "CPUs then run, 1 is no cap"),
    Column("gpu_cap", NUMBER, "1", "of `cap`: share of each GPU's highest limit, 1 is no cap"),
))  # fmt: skip
NODE_HOURS = RecordedTable("node-hours", "an hour of a node; they add up to its bill", (
    *_RUN,
    Column("hour", WHOLE, WHICH, "hour since the scenario's start, from 0"),
    Column("node", WORD, "", "name of the node"),
    Column("zone", WORD, "", "grid zone of the node"),
    Column("length_s", NUMBER, "s", "part of the hour that is billed"),
    Column("cpu_core_s", NUMBER, "core-s", "CPU cores requested by what ran, times time"),
    Column("gpu_s", NUMBER, "GPU-s", "GPUs requested by what ran, times time"),
    *_bill(),
))  # fmt: skip
GRID = RecordedTable("grid", "a step of a zone's grid, which holds until the zone's next one", (
    _SEED,
    Column("zone", WORD, "", "name of the zone"),
    Column("time_s", NUMBER, "s", "start of the step"),
    Column("carbon_g_per_kwh", NUMBER, "g/kWh", "true carbon intensity; empty: no data"),
    Column("price_per_mwh", NUMBER, f"{CURRENCY}/MWh", "true price; empty: no data"),
    Column("forecast_carbon_g_per_kwh", NUMBER, "g/kWh", "carbon intensity that policies expect"),
    Column("forecast_price_per_mwh", NUMBER, f"{CURRENCY}/MWh", "price that policies expect"),
    Column("marginal_g_per_kwh", NUMBER, "g/kWh", "marginal carbon intensity; empty: no data"),
    Column("pue", NUMBER, "1", "PUE of the zone's nodes by its weather; empty: no weather"),
    Column("solar_w", NUMBER, "W", "power that the panels yield; empty: no panels"),
))  # fmt: skip
OUTCOMES = RecordedTable("outcomes", "the result of one policy with one seed", (
    _POLICY,
    _SEED,
    Column("jobs", WHOLE, COUNT, "all jobs"),
    Column("jobs_done", WHOLE, COUNT, "jobs that ended within the billed time"),
    Column("work_core_h", NUMBER, "core-h", "work done, in hours of the reference core"),
    Column("work_gpu_h", NUMBER, "GPU-h", "work done, in GPU hours at the reference core's "
                                            "speed"),
    Column("work_memory_gib_h", NUMBER, "GiB-h", "memory held for that work, at the reference "
                                                 "core's speed"),
    Column("deadlines", WHOLE, COUNT, "jobs with a deadline"),
    Column("deadlines_met", WHOLE, COUNT, "jobs that ended by their deadline"),
    Column("jobs_delayed", WHOLE, COUNT, "jobs planned for a start after they were ready"),
    Column("delay_mean_s", NUMBER, "s", "mean time of these from ready to planned start; 0: none"),
    Column("completion_mean_s", NUMBER, "s", "mean completion time of jobs, from arrival to end; a "
                                             "job that never ran counts as begun when the "
                                             "billed time ends"),
    Column("completion_median_s", NUMBER, "s", "median of the same"),
    Column("completion_p95_s", NUMBER, "s", "95th percentile of the same"),
    Column("completion_p99_s", NUMBER, "s", "99th percentile of the same"),
    Column("makespan_s", NUMBER, "s", "time from the first arrival of a job to the last end of one;"
                                      " 0: none ended"),
    Column("throughput_jobs_per_h", NUMBER, "jobs/h", "jobs done over the makespan"),
    *_bill(),
    Column("wait_mean_s", NUMBER, "s", "mean wait of jobs; a job that never ran waits until the "
                                       "end"),
    Column("wait_p95_s", NUMBER, "s", "95th percentile of the same"),
    Column("slowdown_mean", NUMBER, "1", "mean bounded slowdown of jobs"),
    Column("slowdown_p95", NUMBER, "1", "95th percentile of the same"),
    Column("fairness", NUMBER, "1", "Jain's index of the slowdowns; 1: all are equal"),
    *_utilisation(),
    Column("nodes_used", WHOLE, COUNT, "nodes on which anything ran"),
    Column("billed_s", NUMBER, "s", "billed time: the scenario's length, or until the last job "
                                    "ended under any policy; empty, as energy, cost and carbon: "
                                    "its last job ended after the data of the grids"),
    Column("billed_alone_s", NUMBER, "s", "time that would be billed without the other policies"),
    Column("jobs_never_ran", WHOLE, COUNT, "jobs that never ran"),
    Column("energy_charged_j", NUMBER, "J", "energy charged for jobs that never ran, in addition "
                                            "to the bill"),
    Column("cost_charged", NUMBER, CURRENCY, "cost charged for jobs that never ran, in addition "
                                             "to the bill"),
    Column("carbon_charged_g", NUMBER, "g", "carbon charged for jobs that never ran, in addition "
                                            "to the bill"),
    Column("carbon_marginal_g", NUMBER, "g", "carbon of bill and charges at the marginal "
                                             "intensity, in no total; empty: no data"),
    Column("carbon_embodied_g", NUMBER, "g", "embodied carbon of the nodes for the billed time, in "
                                             "no total; empty: no data"),
    Column("solar_used_j", NUMBER, "J", "energy from panels that nodes used at once"),
    Column("solar_stored_j", NUMBER, "J", "energy from panels that batteries stored"),
    Column("solar_curtailed_j", NUMBER, "J", "energy from panels that was not used"),
    Column("battery_given_j", NUMBER, "J", "energy from batteries that nodes used"),
    Column("battery_lost_j", NUMBER, "J", "stored energy that was lost"),
    Column("battery_left_j", NUMBER, "J", "energy left in batteries at the end"),
    Column("imported_j", NUMBER, "J", "energy from the grid in zones with panels; 0 without "
                                      "panels"),
    Column("requests", NUMBER, "requests", "expected requests of services; 0 without services"),
    Column("requests_in_time", NUMBER, "requests", "expected requests within their objectives"),
    Column("requests_turned_away", NUMBER, "requests", "expected requests beyond what replicas "
                                                       "can answer"),
    Column("latency_p50_s", NUMBER, "s", "median latency of all requests; inf: more are turned "
                                         "away; empty: no service"),
    Column("latency_p99_s", NUMBER, "s", "99th percentile of the same"),
    Column("failures", WHOLE, COUNT, "failures of nodes"),
    Column("jobs_stopped", WHOLE, COUNT, "times that a failure stopped a job"),
))  # fmt: skip

ALWAYS = (JOBS_TABLE, DECISIONS_TABLE, NODE_HOURS, GRID)
OF_SERVICES = (REPLICAS, SERVICES)  # only in scenarios with services
