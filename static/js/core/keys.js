/** The keyboard, the same everywhere: arrows move by one, Home and End to the ends where a view has them. */

/** @type {Record<string, {right: number, down: number}>} */
const ARROWS = {
  ArrowLeft: { right: -1, down: 0 },
  ArrowRight: { right: 1, down: 0 },
  ArrowUp: { right: 0, down: -1 },
  ArrowDown: { right: 0, down: 1 },
};

/**
 * The step of an arrow key, or null for any other key and where a modifier gives the key another meaning.
 * @param {KeyboardEvent} event
 */
export function arrowStep(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return null;
  return ARROWS[event.key] ?? null;
}
