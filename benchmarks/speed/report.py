"""All measurements of one run, as one object and as tables."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.speed import measure, predictions, scheduling

if TYPE_CHECKING:
    from rich.table import Table

Say = Callable[[str], None]


def run_bench(quick: bool = False, say: Say | None = None) -> dict[str, Any]:
    """Everything in one run; a few minutes on two cores, seconds with `quick` (small sizes).

    Only ratios within one run count: the machine, its load and its libraries enter every number.
    """
    say = say or (lambda text: None)
    start = time.perf_counter()
    report: dict[str, Any] = {"quick": quick, "machine": _machine()}
    report["load"] = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "not known"
    dim = 200 if quick else 1000
    plan = {0.3: (10, 4), 1.0: (10, 4), 3.0: (10, 2)} if quick else {
        0.3: (40, 4), 1.0: (40, 5), 3.0: (16, 2)
    }  # fmt: skip
    report["per_seed"] = []
    for ratio, (seeds, plain_seeds) in plan.items():
        say(f"seconds per seed at k/m = {ratio:g}")
        report["per_seed"].append(measure.per_seed(dim, ratio, seeds, plain_seeds))
    sizes = (200, 300, 400, 600) if quick else (500, 1000, 2000, 4000)
    say(f"share of the machine's rate at n = {sizes[-1]}")
    report["gemm"] = measure.gemm_share(sizes[-1])
    say("growth")
    known = {sizes[-1]: report["gemm"]["one_threads"]["cpu"]}
    report["growth"] = measure.growth(sizes, known)
    say("memory")
    report["memory"] = [
        measure.peak_memory(sizes[-2], "ours"),
        measure.peak_memory(sizes[-2], "plain"),
        measure.peak_memory(sizes[-1], "ours"),
    ]
    say("theory")
    names = ["relu", "tanh", "isotropic"] if quick else None
    report["theory"] = predictions.seconds_per_point(names)
    spans = (300, 3000) if quick else (300, 3000, 30_000, 300_000)
    report["theory_by_n"] = predictions.independence(spans)
    say("theory against simulation, one curve")
    report["curve"] = predictions.curve(dim, 5 if quick else 20)
    say("scheduling")
    report["scheduling"] = scheduling.overheads(60 if quick else 400, dask=not quick)
    report["seconds"] = time.perf_counter() - start
    return report


def _machine() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    blas = sorted({f"{i['internal_api']} {i['version']}" for i in threadpool_info()})
    return {
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
        "numpy": np.__version__,
        "blas": blas,
    }


def tables(report: dict[str, Any]) -> list[Table]:
    """The report for a terminal."""
    return [_per_seed(report), _rates(report), _theory(report)]


def _table(title: str, *headers: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for i, header in enumerate(headers):
        table.add_column(header, justify="right" if i else "left")
    return table


def _per_seed(report: dict[str, Any]) -> Table:
    n = report["per_seed"][0]["n"]
    table = _table(
        f"3 activations × (network, Hermite), n = m = {n}, one thread: CPU seconds",
        "k/m", "ours", "in double", "plain", "ratio", "in double", "to 1 %", "to ¼ %",
        "difference to 1 %",
    )  # fmt: skip
    for r in report["per_seed"]:
        table.add_row(
            f"{r['k'] / r['m']:g}", f"{r['ours_cpu']:.3f}", f"{r['double_cpu']:.3f}",
            f"{r['plain_cpu']:.2f}", f"{r['cpu_ratio']:.1f}×", f"{r['double_ratio']:.1f}×",
            f"{r['ratio_to_1_percent']:.0f}×",
            f"{r['ratio_to_quarter_percent']:.0f}×", f"{r['difference_ratio']:.0f}×",
        )  # fmt: skip
    table.caption = (
        "CPU seconds of a seed, and how many times less of them ours takes: for a seed, for a "
        "standard error of all six mean test errors (with control variates; on either side at "
        'least as many seeds as "auto" takes), and for that of Hermite model minus network'
    )
    return table


def _rates(report: dict[str, Any]) -> Table:
    table = _table("Rate, growth, memory, scheduling", "what", "measured")
    gemm = report["gemm"]
    for name, label in (("all", "all threads, elapsed"), ("one", "one thread, CPU time")):
        part = gemm[f"{name}_threads"]
        rate = f"{part['gemm_gflops']:.0f} GFlop/s"
        share = part["share"] if name == "all" else part["cpu_share"]
        saved = gemm["direct_operations"] / gemm["operations"]
        table.add_row(
            f"share of the product's rate, n = m = k = {gemm['n']}, {label}",
            f"{share:.0%} of {rate}; {share * saved:.0%} with a direct readout",
        )
    sizes = report["growth"]["sizes"]
    table.add_row(
        f"growth exponent over n = {sizes[0]}…{sizes[-1]}", f"{report['growth']['exponent']:.2f}"
    )
    for r in report["memory"]:
        table.add_row(
            f"peak memory of one network, n = m = k = {r['n']}, {r['which']}",
            f"{r['bytes'] / 1e6:.0f} MB = {r['matrices']:.1f} matrices",
        )
    for r in report["scheduling"]:
        who = f"{r['workers']} {r['engine']} workers" if r["workers"] > 1 else "in one process"
        table.add_row(f"scheduling of units of 50 ms, {who}", f"{r['overhead']:+.1%}")
    return table


def _theory(report: dict[str, Any]) -> Table:
    table = _table(
        "Theory to 1 %, one thread", "setting", "CPU seconds", "test error", "error estimate"
    )
    rows = [(r["setting"], r) for r in report["theory"]]
    rows += [(f"tanh, n = k = m = {r['n']}", r) for r in report["theory_by_n"]]
    for name, r in rows:
        if "test_error" not in r:
            table.add_row(name, "refused", "", r["status"][:60])
            continue
        accuracy = f"{100 * r['error_estimate']:.1g} %"
        table.add_row(name, f"{r['cpu']:.3f}", f"{r['test_error']:.5g}", accuracy)
    c = report["curve"]
    table.caption = (
        f"a curve of {c['points']} widths at n = m = {c['n']}: {c['theory_cpu']:.2f} s, the "
        f"simulation to the same precision {c['simulation_cpu_to_1_percent']:.0f} s: "
        f"{c['ratio']:.0f}×"
    )
    return table
