"""The prompts that the first page offers, each with what there is to see."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Example:
    """One prompt worth looking at."""

    title: str
    text: str
    why: str

    def to_json(self) -> dict[str, str]:
        """The example as plain data."""
        return asdict(self)


EXAMPLES = (
    Example(
        "An induction pattern",
        "Mr Dursley was late. Mrs Dursley was not. The neighbours knew Mr Durs",
        "“Durs” has come twice, each time followed by “ley”. Look for heads whose row at the end points to the token "
        "after an earlier copy.",
    ),
    Example(
        "Indirect objects",
        "When Mary and John went to the store, John gave a drink to",
        "The answer is the name that was said once. Look for heads in the later layers that look from the last token "
        "to “Mary”, and what their message is worth.",
    ),
    Example(
        "A fact",
        "The capital of Germany is",
        "Look where the last token reads from, and in which layer the stream turns towards the answer.",
    ),
    Example(
        "A repeated list",
        "red, seven, moon, chair, red, seven, moon, chair, red, seven,",
        "Everything from the second round on can be copied: many heads attend exactly one round back, and "
        "surprisal falls.",
    ),
    Example(
        "Another language",
        "Der Hund schläft auf dem Sofa, und die Katze schläft auf dem",
        "A small English model splits German words into many pieces; see which heads put a word together again.",
    ),
)
