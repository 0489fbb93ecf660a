"""How much one page may ask for: sizes, counts and seconds."""

from __future__ import annotations

from onegrad.errors import SpecError
from onegrad.problem import Problem

DATA_MODELS = ("isotropic", "mixture")  # models a page may ask for: others read files
MESSAGE_BYTES = 32_000  # of one message from a page
PAGES = 12  # open at the same time: the tabs of one person
POINTS = 1000  # most points of one theory request: a map of 30 × 30 and some room
RUNS = 2000  # points times seeds of one simulation
MOST_STEPS = 5  # steps shown one by one
DRAW_SIZE = 1600  # n, m and k of a drawn spectrum, whose singular values are all computed

THEORY_SECONDS = 120.0  # limit of one point; the page has a stop button
SIMULATION_SECONDS = 60.0  # limit of one repetition of one point
REQUEST_SECONDS = 600.0  # limit of one request: tasks not yet started are dropped
WORKER_BYTES = 4 << 30  # address space of a worker process

_PRODUCT = 6e9  # n·m·k of a simulated point: seconds on one core
_MATRIX = 1e7  # entries of the largest matrix of a simulated point
_DIRECTIONS = 50  # spikes of all components together
_SIZE = 1_000_000  # n, m and k where only theory is asked for


def check_theory(problem: Problem) -> None:
    """Refuse what no page should ask of the theory."""
    sizes = {
        "data.dim": problem.dim,
        "training.samples": problem.samples,
        "network.width": problem.width,
    }
    for key, value in sizes.items():
        if value > _SIZE:
            raise SpecError.of(
                key, value, f"must be at most {_SIZE} on the page", "Use `onegrad predict`"
            )
    if not problem.one_step:  # its theory draws and trains first layers
        check_simulation(problem)
    rank = getattr(problem.data, "rank", 0)
    spikes = problem.components * max(rank, 1)
    if spikes > _DIRECTIONS:
        raise SpecError.of(
            "data.rank", rank, f"makes {spikes} spikes; the page takes {_DIRECTIONS}",
            "Use `onegrad predict`",
        )  # fmt: skip


def check_simulation(problem: Problem, steps: int = 0) -> None:
    """Refuse a point that would keep a worker for more than some seconds.

    steps : of the first layer, the problem's own by default
    """
    n, m, k = problem.dim, problem.samples, problem.width
    steps = steps or problem.training.steps
    matrix = max(n * m, n * k, m * k, n * problem.step_samples, k * problem.step_samples)
    several = "one step" if steps == 1 else f"{steps} steps"
    if n * m * k * steps > _PRODUCT or matrix > _MATRIX:
        raise SpecError.of(
            "data.dim", n,
            f"with {m} samples, {k} neurons and {several} is too large to simulate on the "
            f"page (n·m·k·steps up to {_PRODUCT:.0e})",
            'Take fewer inputs or neurons, or use "copy as spec" and `onegrad run`',
        )  # fmt: skip


def check_steps(problem: Problem) -> None:
    """Refuse a network that is too large to be trained and predicted step by step."""
    check_simulation(problem, MOST_STEPS)
    if problem.width > DRAW_SIZE:
        raise SpecError.of(
            "network.width", problem.width, f"must be at most {DRAW_SIZE} to be shown step by step",
            "Take fewer neurons, or use `onegrad predict`",
        )  # fmt: skip


def check_draw(problem: Problem) -> None:
    """Refuse a drawn spectrum whose singular values would take too long."""
    largest = max(problem.dim, problem.samples, problem.width, problem.step_samples)
    if largest > DRAW_SIZE:
        raise SpecError.of(
            "data.dim", problem.dim,
            f"with {problem.samples} samples and {problem.width} neurons is too large to draw on "
            f"the page: each may be at most {DRAW_SIZE}",
            "Take fewer inputs, or use `onegrad spectrum`",
        )  # fmt: skip
