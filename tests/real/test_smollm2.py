"""What the default model is known to do, seen through the program."""

from pathlib import Path

import pytest
import torch

from app.analysis.heads import SUMMARIES, scan_heads
from app.analysis.ledger import check_ledger
from app.analysis.predictions import predict
from app.analysis.stream import stream_norms
from app.domain.ledger import Ledger
from app.lm.loading import LoadedTransformer, load_transformer
from app.lm.trace import Trace
from app.settings import Settings

pytestmark = pytest.mark.real_model
INDIRECT_OBJECT = "When Mary and John went to the store, John gave a drink to"


@pytest.fixture(scope="module")
def smollm2(smollm2_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedTransformer:
    return load_transformer("smollm2-135m", smollm2_folder, Settings(data_dir=tmp_path_factory.mktemp("data")))


def _trace(model: LoadedTransformer, text: str) -> Trace:
    return model.record(tuple(token.id for token in model.encode(text)))


@pytest.fixture(scope="module")
def indirect_object(smollm2: LoadedTransformer) -> Trace:
    return _trace(smollm2, INDIRECT_OBJECT)


@pytest.fixture(scope="module")
def repeated(smollm2: LoadedTransformer) -> Trace:
    """Fifty random tokens, twice: nothing but the repetition predicts the second half."""
    drawn = torch.randint(1000, 40000, (50,), generator=torch.Generator().manual_seed(0)).tolist()
    return smollm2.record(tuple(drawn + drawn))


def test_the_indirect_object_is_the_top_prediction(smollm2: LoadedTransformer, indirect_object: Trace) -> None:
    predictions = predict(indirect_object)
    assert smollm2.vocabulary.label(int(predictions.top_ids[-1, 0])) == "·Mary"
    # 0.92 in the run that this was written from; a model that has lost its positions or its norms is far below.
    assert float(predictions.top_probabilities[-1, 0]) > 0.85


def test_every_row_of_the_ledger_holds(smollm2: LoadedTransformer, indirect_object: Trace) -> None:
    ledger: Ledger = check_ledger(smollm2, indirect_object, scan_heads(indirect_object).replay)
    assert len(ledger.rows) == 7
    assert [row.name for row in ledger.rows if not row.holds] == []
    # Float32 rounding over 576 numbers; the tolerance of 1e-4 is not what makes these hold.
    assert max(row.worst_rel for row in ledger.rows) < 2e-5


def test_a_repeated_sequence_has_heads_that_attend_to_the_token_after_the_earlier_copy(repeated: Trace) -> None:
    induction = scan_heads(repeated).summaries["induction"]
    strongest = sorted(induction.ravel(), reverse=True)
    assert strongest[0] > 0.8
    assert sum(score > 0.3 for score in strongest) >= 3
    # Most heads do something else, so the score tells heads apart.
    assert float(torch.tensor(induction).median()) < 0.05


def test_the_second_copy_is_predicted_and_the_first_is_not(repeated: Trace) -> None:
    surprisal = predict(repeated).surprisal
    assert float(surprisal[1:50].median()) > 8
    # 2.3 bits in the run that this was written from; without the copy, a token costs 15 bits.
    assert float(surprisal[55:].median()) < 4


def test_some_heads_look_at_the_token_before(indirect_object: Trace) -> None:
    assert scan_heads(indirect_object).summaries["previous_token"].max() > 0.8


def test_many_heads_rest_on_the_first_token_whose_stream_is_far_larger(indirect_object: Trace) -> None:
    first_token = scan_heads(indirect_object).summaries["first_token"]
    assert (first_token > 0.5).mean() > 0.4
    middle = stream_norms(indirect_object)[15]
    assert middle[0] > 20 * middle[1:].median()


def test_every_head_has_every_summary(indirect_object: Trace) -> None:
    summaries = scan_heads(indirect_object).summaries
    assert set(SUMMARIES) <= set(summaries)
    assert summaries["first_token"].shape == (30, 9)


@pytest.mark.parametrize(
    "text", ["1234", "Hi 👍🏽!", "😀😀", "東京メトロ", "a<b<c", "tab\tnew\nline", "e\u0301", "שלום"]
)
def test_the_tokens_are_the_text_piece_by_piece(smollm2: LoadedTransformer, text: str) -> None:
    tokens = smollm2.encode(text)
    assert b"".join(token.bytes for token in tokens) == text.encode()
    for token in tokens:
        assert not set(token.label) & set("ĠĊÃ▁\n\t")


def test_digits_are_tokens_one_by_one(smollm2: LoadedTransformer) -> None:
    assert [token.text for token in smollm2.encode("1234")] == ["1", "2", "3", "4"]
