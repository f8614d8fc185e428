"""The ledger of an LSTM: every claim that its pictures rest on, checked on the trace at hand.

Sums must close to 1e-5 of the largest entry of the vector compared: they are of at most a few hundred products in
float32, which carries 1.2e-7. The recorded run is compared with torch's own LSTM, whose products are summed in another
order at every step: 1e-4, as for transformers.
"""

import torch

from app.analysis.ledger import spread
from app.analysis.lstm.delivery import Delivery, logit_parts
from app.analysis.lstm.memory import Memory, hidden_parts
from app.analysis.residue import Worst
from app.domain.ledger import Ledger, LedgerRow
from app.lm.lstm import LoadedLstm
from app.lm.lstm_trace import LstmTrace, Run

TOLERANCE = 1e-5
RERUN_TOLERANCE = 1e-4
COMPARED_POSITIONS = 32


class LstmLedger:
    """Rows that are filled while the runs of a trace pass by."""

    def __init__(self, trace: LstmTrace) -> None:
        self._trace = trace
        self._replay, self._cell, self._hidden = Worst(), Worst(), Worst()
        self._pooled, self._logits, self._split = Worst(), Worst(), Worst()

    def take(self, run: Run, memory: Memory, delivery: Delivery) -> None:
        """Checks one run."""
        at, gates = run.reader, self._trace.gates

        def name(layer: int) -> str:
            return f"layer {layer}, position {at}"

        # The recorded last step is compared with the replay, the sums with what was recorded.
        for kept, replayed in zip(gates.tensors(), run.gates.tensors(), strict=True):
            self._replay.compare(replayed[:, -1], kept[:, at], name)
        self._cell.compare(memory.total, gates.cell[:, at], name)
        self._hidden.compare(hidden_parts(run, memory).total, gates.hidden[:, at], name)
        self._pooled.compare(delivery.total[None], self._trace.pooled[at][None], lambda _: f"position {at}")
        logits = self._trace.logits(at, at + 1)
        summed = delivery.total @ self._trace.output_weight.T + self._trace.output_bias
        self._logits.compare(summed[None], logits, lambda _: f"position {at}")
        if at == self._trace.n_pos - 1:
            self._compare_split(delivery, logits[0])

    def _compare_split(self, delivery: Delivery, logits: torch.Tensor) -> None:
        """The same logit summed by source, and by unit, for the best few predictions."""
        best = logits.topk(min(5, len(logits))).indices.tolist()
        parts = [logit_parts(self._trace, delivery, target) for target in best]
        by_source = torch.stack([part.per_source.sum() + part.start.sum() + part.bias for part in parts])
        by_unit = torch.stack([part.per_feature.sum() + part.bias for part in parts])
        # Relative to the largest logit: a logit near zero is a difference of large terms.
        scale = logits.abs().max()
        for total in (by_source, by_unit):
            both = torch.cat([total, scale[None]])[None], torch.cat([logits[best], scale[None]])[None]
            self._split.compare(*both, lambda _: f"position {self._trace.n_pos - 1}")

    def finish(self, loaded: LoadedLstm) -> Ledger:
        """All rows."""
        n = self._trace.n_pos
        return Ledger(
            (
                self._rerun(loaded),
                self._replay.row(
                    "replay", "A run that is replayed gives the gates and states that were recorded.", TOLERANCE
                ),
                self._cell.row(
                    "cell",
                    "Σ over sources of (Π forget gates) ⊙ input gate ⊙ candidate, and the start's term, is the cell.",
                    TOLERANCE,
                    f"{n} readers, every layer",
                ),
                self._hidden.row(
                    "hidden",
                    "The same sum through the output gate, with tanh(c)/c held fixed, is the hidden state.",
                    TOLERANCE,
                    f"{n} readers, every layer",
                ),
                self._pooled.row(
                    "readout",
                    "What every source and the start bring to the read-out adds up to what it was given.",
                    TOLERANCE,
                ),
                self._logits.row(
                    "logit_sources",
                    "Contributions of the sources, the start and the output bias add up to every logit.",
                    TOLERANCE,
                    f"{n} readers, all logits",
                ),
                self._split.row(
                    "logit_units",
                    "Summed by source or by unit, the best predictions' logits are the same.",
                    TOLERANCE,
                    "last position",
                ),
            )
        )

    def _rerun(self, loaded: LoadedLstm) -> LedgerRow:
        positions = spread(self._trace.n_pos, COMPARED_POSITIONS)
        plain = loaded.plain_logits(self._trace.token_ids, positions)
        recorded = torch.cat([self._trace.logits(position, position + 1) for position in positions])
        worst = Worst()
        worst.compare(recorded, plain, lambda i: f"position {positions[i]}")
        return worst.row(
            "logits",
            "Logits of the recorded runs are those of torch's own LSTM, run again, unrecorded.",
            RERUN_TOLERANCE,
            f"{len(positions)} of {self._trace.n_pos} positions",
        )
