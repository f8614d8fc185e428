"""The command line, as a process: what it prints, where, and with which exit status."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.web.conftest import save_tiny_model

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "tiny"
    save_tiny_model(folder)
    return folder


@pytest.fixture
def environment(tmp_path: Path, tiny: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HEADWATER_")}
    models = json.dumps([f"tiny=dir:{tiny}"])
    return {**kept, "HEADWATER_DATA_DIR": str(tmp_path / "data"), "HEADWATER_MODELS": models, "COLUMNS": "200"}


@pytest.fixture
def run(python: str, environment: dict[str, str]) -> Run:
    def run(*arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-m", "app", *arguments],
            env={**environment, **changed}, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
        )  # fmt: skip

    return run


def test_models_lists_the_catalogue_and_says_what_is_here(run: Run, tiny: Path) -> None:
    done = run("models", HEADWATER_MODELS=json.dumps([f"tiny=dir:{tiny}", "textgenrnn=wheel:textgenrnn==2.0.0"]))
    assert done.returncode == 0
    assert re.search(r"tiny +transformer +dir:.*yes", done.stdout)
    assert re.search(r"textgenrnn +lstm .*no; headwater fetch textgenrnn", done.stdout)


def test_check_prints_every_row_of_the_ledger_and_passes(run: Run) -> None:
    done = run("check", "tiny")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^holds ", done.stdout, re.MULTILINE)) == 7
    assert "all 7 rows hold" in done.stdout


def test_check_takes_a_source_instead_of_a_name(run: Run, tiny: Path) -> None:
    assert run("check", f"dir:{tiny}").returncode == 0


def test_check_of_a_folder_without_a_model_says_so_in_one_line(run: Run, tmp_path: Path) -> None:
    done = run("check", f"dir:{tmp_path}")
    assert done.returncode == 1
    assert re.fullmatch(r"headwater: There is no config\.json in .*\n", done.stderr)


def test_an_unknown_model_is_answered_with_those_there_are(run: Run) -> None:
    done = run("check", "nothing")
    assert done.returncode == 1
    assert done.stderr == "headwater: There is no model named 'nothing'; there are: tiny.\n"


def test_a_setting_that_cannot_be_used_is_named(run: Run) -> None:
    done = run("models", HEADWATER_PORT="eight")
    assert done.returncode == 1
    assert done.stderr.startswith("headwater: The configuration cannot be used. HEADWATER_PORT: ")


def test_fetch_of_a_folder_that_is_there_does_nothing(run: Run, tiny: Path) -> None:
    done = run("fetch", "tiny")
    assert done.returncode == 0
    assert str(tiny) in done.stderr


def test_analyze_writes_every_tensor_with_its_shape(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.npz"
    done = run("analyze", "abc abc", "--out", str(out))
    assert done.returncode == 0, done.stderr
    with np.load(out) as npz:
        shapes = {name: npz[name].shape for name in npz.files}
        pattern, tokens, ledger = npz["pattern"], npz["tokens"], json.loads(str(npz["ledger"]))
        dtypes = {npz[name].dtype for name in npz.files if name not in ("tokens", "token_ids", "ledger")}
    expected = {
        "token_ids": (7,), "tokens": (7,), "pattern": (2, 4, 7, 7), "message_norm": (2, 4, 7),
        "head_write_norm": (2, 4, 7), "attn_write_norm": (2, 7), "mlp_write_norm": (2, 7), "stream_norm": (3, 7),
        "logits_last": (256,),
    }  # fmt: skip
    assert {name: shapes[name] for name in expected} == expected
    assert dtypes == {np.dtype("f4")}
    # A row of a pattern is a distribution over what can be seen.
    np.testing.assert_allclose(pattern.sum(-1), 1, atol=1e-6)
    assert (pattern[..., np.triu_indices(7, 1)[0], np.triu_indices(7, 1)[1]] == 0).all()
    assert "".join(tokens) == "abc abc"
    assert ledger
    assert all(row["holds"] for row in ledger)


def test_analyze_writes_json_with_the_tensors_that_were_named(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    assert (
        run("analyze", "abc", "--out", str(out), "--model", "tiny", "--tensors", "stream_norm, tokens").returncode == 0
    )
    written = json.loads(out.read_text())
    assert sorted(written) == ["stream_norm", "tokens"]
    assert np.array(written["stream_norm"]).shape == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("abc", "--out", "a.txt"), "neither in .npz nor in .json"),
        (("  ", "--out", "a.npz"), "empty or only white space"),
        (("x" * 40, "--out", "a.npz"), "The prompt has 40 tokens; tiny takes 32 here"),
        (("abc", "--out", "a.npz", "--tensors", "nonsense"), "nonsense"),
        (("abc", "--out", "no/such/folder/a.npz"), "no/such/folder"),
    ],
)
def test_analyze_refuses_what_it_cannot_do_and_writes_nothing(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    arguments = tuple(str(tmp_path / part) if part.endswith((".npz", ".txt")) else part for part in arguments)
    done = run("analyze", *arguments, HEADWATER_MAX_TOKENS="32")
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.npz"))


def test_serve_says_where_it_is_once_it_listens_and_ends_on_a_signal(python: str, environment: dict[str, str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [python, "-m", "app", "serve", "--port", str(port)], env=environment, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.strip())
        address = f"http://127.0.0.1:{port}"
        assert f"Headwater is at {address} " in line
        with urllib.request.urlopen(f"{address}/", timeout=10) as answer:
            assert answer.status == 200
        assert _becomes_ready(f"{address}/readyz")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode in (0, -signal.SIGTERM)


def _becomes_ready(url: str) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            time.sleep(0.1)
    return False


def test_a_port_that_is_taken_is_said_with_what_to_do(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert "headwater serve --port NUMBER" in done.stderr
