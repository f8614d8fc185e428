/**
 * Labels of token ids that the page has met, for a target that a link gives by its id alone.
 * @typedef {import("../api/lenses.js").Word} Word
 *
 * @typedef {Object} Words
 * @property {(words: (Word | null | undefined)[]) => void} learn
 * @property {(id: number) => string} label
 */

/**
 * @param {import("../api/types.js").Analysis} analysis
 * @returns {Words}
 */
export function createWords({ tokens = [], predictions = [] }) {
  /** @type {Map<number, string>} */
  const labels = new Map();
  for (const { id, label } of predictions.flat()) labels.set(id, label);
  for (const { id, label } of tokens) labels.set(id, label);
  return {
    learn(words) {
      for (const word of words) if (word) labels.set(word.id, word.label);
    },
    label: (id) => labels.get(id) ?? `token ${id}`,
  };
}
