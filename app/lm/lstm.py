"""An LSTM of standard form in a folder: loaded, described, recorded.

The folder's two files are described in `lstm_conversion`, and what a run is in `lstm_trace`. textgenrnn was trained on
windows of 40 characters, padded on the left, from a state of zeros, and that is how it is run here for every reader.
The padding is not masked: it is part of the network, and the state before the first character is not zero. Reading on
through a longer text without a fresh start would be another network: on English prose its surprise rises from 2 bits
for each character to 6 beyond the fortieth.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from app.domain.tokens import Token
from app.errors import ModelUnavailable, UnknownToken, Unsupported
from app.lm.catalog import LSTM_CONFIG
from app.lm.fingerprints import hash_files
from app.lm.lstm_trace import RUNS_AT_A_TIME, Gates, LstmTrace, ReadLayout, Run, StepTensors, windows
from app.lm.lstm_vocabulary import LstmVocabulary
from app.lm.protocol import Progress
from app.settings import Settings

FORMAT = 1
# In one long run, a report of progress every so many steps: it is also where the run can be cancelled.
STEPS_PER_REPORT = 64


class LstmNetwork(nn.Module):
    """Embedding, LSTM layers and read-out, with the names of the folder's weights."""

    def __init__(self, shapes: Mapping[str, torch.Size], kind: str) -> None:
        super().__init__()
        vocab, d_embed = shapes["embedding.weight"]
        n_units = shapes["lstm.weight_hh_l0"][1]
        n_layers = sum(name.startswith("lstm.weight_hh_l") for name in shapes)
        d_read = shapes["output.weight"][1]
        self.embedding = nn.Embedding(vocab, d_embed)
        self.lstm = nn.LSTM(d_embed, n_units, n_layers, batch_first=True)
        self.output = nn.Linear(d_read, shapes["output.weight"][0])
        self.attention = nn.ParameterDict({"weight": torch.zeros(d_read)}) if kind == "attention" else None

    def layout(self) -> ReadLayout:
        """Where the parts of d_read lie."""
        d_embed, n_units, n_layers = self.lstm.input_size, self.lstm.hidden_size, self.lstm.num_layers
        if self.attention is None:
            return ReadLayout(None, ((n_layers - 1, slice(0, n_units)),))
        starts = [d_embed + layer * n_units for layer in range(n_layers)]
        return ReadLayout(
            slice(0, d_embed), tuple((layer, slice(start, start + n_units)) for layer, start in enumerate(starts))
        )


@dataclass(eq=False)
class LoadedLstm:
    """An LSTM that can be asked for tokens, a trace, and plain logits. `window` is None where it has none."""

    id: str
    title: str
    fingerprint: str
    network: LstmNetwork
    vocabulary: LstmVocabulary
    window: int | None
    max_tokens: int
    kind: Literal["lstm"] = "lstm"
    dtype: str = "float32"
    device: str = "cpu"

    @property
    def size_bytes(self) -> int:
        """Memory of the weights."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.network.parameters())

    def anatomy_json(self) -> Mapping[str, object]:
        """Its shape, as plain data."""
        lstm = self.network.lstm
        return {
            "family": "lstm",
            "unit": self.vocabulary.unit,
            "n_layers": lstm.num_layers,
            "n_units": lstm.hidden_size,
            "d_embed": lstm.input_size,
            "vocab_size": self.network.output.out_features,
            "window": self.window,
            "readout": "last" if self.network.attention is None else "attention",
            "unknown_id": self.vocabulary.unknown_id,
        }

    def encode(self, text: str) -> tuple[Token, ...]:
        """The characters, or words, of a text; what the vocabulary lacks has the id that stands for the unknown."""
        return self.vocabulary.encode(text)

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids.

        Raises:
            UnknownToken: an id is outside the embedding.
        """
        size = self.network.embedding.num_embeddings
        wrong = [token_id for token_id in token_ids if not 0 <= token_id < size]
        if wrong:
            raise UnknownToken(
                f"Token id {wrong[0]} does not exist; {self.id} has ids 0 to {size - 1}.", token_id=wrong[0], size=size
            )
        return self.vocabulary.tokens_of(token_ids)

    def record(self, token_ids: tuple[int, ...], progress: Progress | None = None) -> LstmTrace:
        """Every reader's run; the last step of each is kept."""
        ids = torch.tensor(token_ids, dtype=torch.long)
        network, output = self.network, self.network.output
        with torch.inference_mode():
            if self.window is None:
                steps = self._step_through(network.embedding(ids)[None], progress)
                gates, embed = steps.all_steps(), network.embedding(ids)
                read = self._read(embed, gates)
                pooled = torch.stack([self._attend(read[: t + 1]) @ read[: t + 1] for t in range(len(ids))])
                replay = _slices(self, embed, gates, read)
            else:
                gates, pooled = self._last_steps(ids, progress)
                replay = _replays(self, ids)
        return LstmTrace(
            token_ids,
            gates,
            pooled,
            output.weight.detach(),
            output.bias.detach(),
            network.layout(),
            self.window,
            self.vocabulary.unknown_id,
            replay,
        )

    def plain_logits(self, token_ids: tuple[int, ...], positions: list[int]) -> Float[Tensor, "pos vocab"]:
        """Logits by torch's own LSTM, one position and one run at a time, nothing recorded."""
        network, rows = self.network, []
        with torch.inference_mode():
            for position in positions:
                start = 0 if self.window is None else max(0, position + 1 - self.window)
                own = list(token_ids[start : position + 1])
                if self.window is not None and self.vocabulary.padding_id is not None:
                    own = [self.vocabulary.padding_id] * (self.window - len(own)) + own
                x = embed = network.embedding(torch.tensor(own, dtype=torch.long))
                hidden = []
                # nn.LSTM of several layers gives the top one's states only; the read-out may want every layer's.
                for layer in range(network.lstm.num_layers):
                    x = _one_layer(network.lstm, layer)(x)[0]
                    hidden.append(x)
                read = hidden[-1] if network.attention is None else torch.cat([embed, *hidden], -1)
                rows.append(network.output(self._attend(read) @ read))
        return torch.stack(rows)

    def _last_steps(
        self, ids: Int[Tensor, " pos"], progress: Progress | None
    ) -> tuple[Gates, Float[Tensor, "pos d_read"]]:
        kept, pooled = [], []
        for start in range(0, len(ids), RUNS_AT_A_TIME):
            readers = range(start, min(start + RUNS_AT_A_TIME, len(ids)))
            if progress is not None:
                progress("recording", start / len(ids))
            for run in _replays(self, ids)(readers):
                kept.append(torch.stack([tensor[:, -1] for tensor in run.gates.tensors()]))
                pooled.append(run.pooled)
        return Gates(*torch.stack(kept, 2)), torch.stack(pooled)

    def _read(self, embed: Float[Tensor, "step d_embed"], gates: Gates) -> Float[Tensor, "step d_read"]:
        return gates.hidden[-1] if self.network.attention is None else torch.cat([embed, *gates.hidden], -1)

    def _attend(self, read: Float[Tensor, "step d_read"]) -> Float[Tensor, " step"]:
        """The read-out's weights at the last of these steps: a softmax, or the last step alone."""
        if self.network.attention is None:
            last = torch.zeros(read.shape[0])
            last[-1] = 1.0
            return last
        weights: Tensor = (read @ self.network.attention["weight"]).softmax(-1)
        return weights

    def _step_through(
        self, embed: Float[Tensor, "run step d_embed"], progress: Progress | None = None
    ) -> StepTensors:  # fmt: skip
        lstm, (n_runs, n_steps, _) = self.network.lstm, embed.shape
        stacked = torch.empty(6, lstm.num_layers, n_runs, n_steps, lstm.hidden_size)
        x = embed
        for layer in range(lstm.num_layers):
            weight_ih, weight_hh, bias_ih, bias_hh = lstm.all_weights[layer]
            from_input = x @ weight_ih.T + bias_ih + bias_hh
            h = torch.zeros(n_runs, lstm.hidden_size)
            c = torch.zeros(n_runs, lstm.hidden_size)
            for step in range(n_steps):
                i, f, g, o = (from_input[:, step] + h @ weight_hh.T).chunk(4, -1)
                i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
                c = f * c + i * g
                h = o * c.tanh()
                stacked[:, layer, :, step] = torch.stack([i, f, g, o, c, h])
                if progress is not None and step % STEPS_PER_REPORT == 0:
                    progress("recording", (layer + step / n_steps) / lstm.num_layers)
            x = stacked[5, layer]
        return StepTensors(stacked)


def _slices(
    loaded: LoadedLstm, embed: Float[Tensor, "step d_embed"], gates: Gates, read: Float[Tensor, "step d_read"]
) -> Callable[[Sequence[int]], Iterator[Run]]:
    """Runs of a network without a window: the beginnings of its only run."""

    def replay(readers: Sequence[int]) -> Iterator[Run]:
        for reader in readers:
            end = reader + 1
            own = Gates(*(tensor[:, :end] for tensor in gates.tensors()))
            yield Run(reader, 0, 0, own, embed[:end], read[:end], loaded._attend(read[:end]))

    return replay


def _replays(loaded: LoadedLstm, ids: Int[Tensor, " pos"]) -> Callable[[Sequence[int]], Iterator[Run]]:
    """Runs of a network with a window, computed again, some at a time."""
    window, padding_id = loaded.window, loaded.vocabulary.padding_id
    assert window is not None and padding_id is not None

    def replay(readers: Sequence[int]) -> Iterator[Run]:
        for start in range(0, len(readers), RUNS_AT_A_TIME):
            some = readers[start : start + RUNS_AT_A_TIME]
            with torch.inference_mode():
                embed = loaded.network.embedding(windows(ids, window, padding_id, some))
                steps = loaded._step_through(embed)
                for run, reader in enumerate(some):
                    gates = steps.of_run(run)
                    read = loaded._read(embed[run], gates)
                    first = max(0, reader + 1 - window)
                    n_padding = window - (reader + 1 - first)
                    yield Run(reader, first, n_padding, gates, embed[run], read, loaded._attend(read))

    return replay


def load_lstm(model_id: str, folder: Path, settings: Settings, title: str = "") -> LoadedLstm:
    """The LSTM in a folder, ready to be recorded, on the CPU in float32.

    Raises:
        ModelUnavailable: a file is missing or cannot be read, or a weight is missing or of the wrong shape.
        Unsupported: the weights are not those of a plain one-directional LSTM, or the config asks for something else.
    """
    config, weights = _read_config(folder), _read_weights(folder)
    kind = config["readout"].get("kind")
    if kind not in ("attention", "last"):
        raise Unsupported(f"{LSTM_CONFIG} in {folder} has a read-out {kind!r}; known are attention and last.")
    network = _network(folder, weights, kind)
    window = config["window"] or {}
    vocabulary = LstmVocabulary(
        config["unit"],
        config["vocabulary"],
        config["unknown_id"],
        window.get("padding_id"),
        bool(config.get("lowercase", False)),
    )
    _require_ids(folder, vocabulary, network.embedding.num_embeddings, bool(window))
    if settings.threads:
        torch.set_num_threads(settings.threads)
    return LoadedLstm(
        id=model_id,
        title=title or str(config.get("title", model_id)),
        fingerprint=hash_files(folder, (LSTM_CONFIG, "*.safetensors")),
        network=network,
        vocabulary=vocabulary,
        window=int(window["length"]) if window else None,
        max_tokens=settings.max_tokens,
    )


def _one_layer(lstm: nn.LSTM, layer: int) -> nn.LSTM:
    weights = lstm.all_weights[layer]
    single = nn.LSTM(weights[0].shape[1], lstm.hidden_size)
    single.load_state_dict(dict(zip(single.state_dict(), weights, strict=True)))
    return single.requires_grad_(False)


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / LSTM_CONFIG
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version, unit = config["format"], config["unit"]
        missing = [key for key in ("vocabulary", "unknown_id", "readout", "window") if key not in config]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(f"{path} is missing or cannot be read ({type(error).__name__}).") from error
    if version != FORMAT or missing:
        lacking = f"lacks {', '.join(missing)}" if missing else f"is of format {version}; this version reads {FORMAT}"
        raise ModelUnavailable(f"{path} {lacking}. A fetched model is made anew with: headwater fetch --again NAME")
    if unit not in ("character", "word"):
        raise Unsupported(f"{path} has the unit {unit!r}; known are character and word.")
    return config


def _read_weights(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"{path} is missing or cannot be read ({type(error).__name__}).") from error
    return {name: weight.float() for name, weight in weights.items()}


def _network(folder: Path, weights: dict[str, Tensor], kind: str) -> LstmNetwork:
    odd = [name for name in weights if name.endswith("_reverse") or ".weight_hr" in name]
    if odd:
        raise Unsupported(f"{folder} holds {odd[0]}: only one-directional LSTMs without projections can be shown.")
    try:
        network = LstmNetwork({name: weight.shape for name, weight in weights.items()}, kind)
        network.load_state_dict(weights)
    except (KeyError, ValueError, RuntimeError, IndexError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelUnavailable(f"The weights in {folder} are not those of a plain LSTM: {reason}") from error
    lstm, d_read = network.lstm, network.output.in_features
    n_all = lstm.input_size + lstm.num_layers * lstm.hidden_size
    expected = n_all if kind == "attention" else lstm.hidden_size
    if d_read != expected:
        raise ModelUnavailable(
            f"output.weight in {folder} reads {d_read} numbers; a read-out of kind {kind} gives it {expected}."
        )
    return network.eval().requires_grad_(False)


def _require_ids(folder: Path, vocabulary: LstmVocabulary, size: int, has_window: bool) -> None:
    if has_window and vocabulary.padding_id is None:
        raise ModelUnavailable(f"{LSTM_CONFIG} in {folder} gives a window without a padding_id to fill it with.")
    ids = [*vocabulary.ids.values(), vocabulary.unknown_id]
    ids += [] if vocabulary.padding_id is None else [vocabulary.padding_id]
    wrong = [token_id for token_id in ids if not isinstance(token_id, int) or not 0 <= token_id < size]
    if wrong:
        raise ModelUnavailable(
            f"The vocabulary in {folder} names id {wrong[0]}; the embedding has ids 0 to {size - 1} only."
        )
