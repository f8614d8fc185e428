/** The prompts that the first page offers, each with what there is to see. */
export const EXAMPLES = [
  {
    title: "An induction pattern",
    text: "Mr Dursley was late. Mrs Dursley was not. The neighbours knew Mr Durs",
    why: "“Durs” has come twice, each time followed by “ley”. Look for heads whose row at the end points to the token after an earlier copy.",
  },
  {
    title: "Indirect objects",
    text: "When Mary and John went to the store, John gave a drink to",
    why: "The answer is the name that was said once. Look for heads in the later layers that look from the last token to “Mary”, and what their message is worth.",
  },
  {
    title: "A fact",
    text: "The capital of Germany is",
    why: "Look where the last token reads from, and in which layer the stream turns towards the answer.",
  },
  {
    title: "A repeated list",
    text: "red, seven, moon, chair, red, seven, moon, chair, red, seven,",
    why: "Everything from the second round on can be copied: many heads attend exactly one round back, and surprisal falls.",
  },
  {
    title: "Another language",
    text: "Der Hund schläft auf dem Sofa, und die Katze schläft auf dem",
    why: "A small English model splits German words into many pieces; see which heads put a word together again.",
  },
];
