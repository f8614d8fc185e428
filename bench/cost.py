"""What recording costs: one plain forward pass against recording against everything up to the first drawing.

    python -m bench.cost [--model FOLDER] [--lengths 32 128 512 1024 2048] [--rounds 9] [--seconds 60]

Kinds are interleaved round by round, so that a slow moment of the machine meets all of them; the table gives the median
time of the plain pass, and for every kind the median of its ratio to the plain pass of the same round.

    plain      the untouched model, sdpa, all layers, logits of the last position
    recorded   the same with every hook: a trace
    analysis   a trace and its snapshot without the ledger's second forward pass: thumbnails, summaries, norms,
               predictions at every position, all other rows of the ledger
    request    the whole, the second forward pass included

Memory is the peak of the process above the loaded model, measured in a process of its own for every length.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from app.analysis.snapshot import summarize
from app.lm.loading import LoadedTransformer, load_transformer
from app.settings import Settings

LENGTHS = (32, 128, 512, 1024, 2048)


def _silent(stage: str, fraction: float) -> None:
    pass


def token_ids(n_tokens: int, vocab_size: int) -> tuple[int, ...]:
    """Random ordinary tokens, the same ones every time."""
    generator = torch.Generator().manual_seed(n_tokens)
    return tuple(torch.randint(1000, vocab_size - 1000, (n_tokens,), generator=generator).tolist())


def plain(loaded: LoadedTransformer, ids: tuple[int, ...]) -> None:
    """One forward pass of the untouched model."""
    loaded.plain_logits(ids, [len(ids) - 1])


def request(loaded: LoadedTransformer, ids: tuple[int, ...]) -> float:
    """A trace and its snapshot; returns the seconds of the ledger's own forward pass."""
    snapshot = summarize(loaded, loaded.record(ids), _silent)
    cost = snapshot.meta["cost_s"]
    assert isinstance(cost, dict)
    return float(cost["second_forward"])


def measure(loaded: LoadedTransformer, n_tokens: int, rounds: int, seconds: float) -> dict[str, list[float]]:
    """Seconds of every kind, round by round; fewer rounds where `seconds` are over."""
    ids = token_ids(n_tokens, loaded.anatomy.vocab_size)
    taken: dict[str, list[float]] = {"plain": [], "recorded": [], "analysis": [], "request": []}
    plain(loaded, ids)
    request(loaded, ids)
    begin = time.perf_counter()
    for done in range(rounds):
        if done >= 3 and time.perf_counter() - begin > seconds:
            break
        taken["plain"].append(_timed(lambda: plain(loaded, ids)))
        taken["recorded"].append(_timed(lambda: loaded.record(ids)))
        start = time.perf_counter()
        second_forward = request(loaded, ids)
        taken["request"].append(time.perf_counter() - start)
        taken["analysis"].append(taken["request"][-1] - second_forward)
    return taken


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_above_model(folder: Path, n_tokens: int, kind: str) -> float:
    """MiB that one run of a kind needs above the loaded model, at its worst moment."""
    command = [sys.executable, "-m", "bench.cost", "--model", str(folder), "--peak", kind, "--lengths", str(n_tokens)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _peak_here(folder: Path, n_tokens: int, kind: str) -> float:
    loaded = _load(folder)
    plain(loaded, token_ids(8, loaded.anatomy.vocab_size))
    before = _peak_mib()
    ids = token_ids(n_tokens, loaded.anatomy.vocab_size)
    {"plain": plain, "recorded": lambda model, ids: model.record(ids), "request": request}[kind](loaded, ids)
    return _peak_mib() - before


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _load(folder: Path) -> LoadedTransformer:
    return load_transformer("bench", folder, Settings())


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Settings().models_dir / "smollm2-135m")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=60, help="longest time for one length, after three rounds")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print(_peak_here(arguments.model, arguments.lengths[0], arguments.peak))
        return
    loaded = _load(arguments.model)
    table = Table(title=f"{arguments.model.name}, {torch.get_num_threads()} threads", box=None)
    columns = ["tokens", "rounds", "plain s", "recorded ×", "analysis ×", "request ×"]
    columns += [] if arguments.no_memory else ["peak MiB: plain", "recorded", "request"]
    for column in columns:
        table.add_column(column, justify="right")
    for n_tokens in arguments.lengths:
        taken = measure(loaded, n_tokens, arguments.rounds, arguments.seconds)
        ratios = [
            statistics.median(a / b for a, b in zip(taken[kind], taken["plain"], strict=True))
            for kind in ("recorded", "analysis", "request")
        ]
        peaks = [] if arguments.no_memory else ["plain", "recorded", "request"]
        table.add_row(
            str(n_tokens),
            str(len(taken["plain"])),
            f"{statistics.median(taken['plain']):.3f}",
            *(f"{ratio:.2f}" for ratio in ratios),
            *(f"{peak_above_model(arguments.model, n_tokens, kind):.0f}" for kind in peaks),
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
