/**
 * A logit as a staircase of its parts: every row begins where the one before it ended, and the last one ends at the sum.
 * A part that is opened is replaced by its own parts, so that the staircase always closes.
 *
 * @typedef {import("../api/lenses.js").AttributionRow} AttributionRow
 *
 * @typedef {Object} Step
 * @property {string} label
 * @property {number} value
 * @property {number} from @property {number} to running sum before and after
 * @property {number} level 0 for a group, 1 for its parts, 2 for the parts of a head
 * @property {string} path of the number in the answer, "" where it was summed here
 * @property {number | null} layer @property {number | null} head what the row stands for, where it stands for one
 * @property {number | null} key source position, in the parts of a head
 * @property {"group" | "open" | "leaf" | "rest"} state group can be opened, open is: its parts follow
 */
import { valueOf } from "./format.js";

const LISTED = 8;

/**
 * @typedef {Object} Parts of one answer
 * @property {AttributionRow[]} rows @property {AttributionRow[]} by_layer
 *
 * @typedef {Object} HeadSources
 * @property {number} layer @property {number} head @property {ArrayLike<number>} values one for each source
 *
 * @param {Parts} answer
 * @param {Object} options
 * @param {string} options.group layer or kind
 * @param {number | null} options.open layer whose parts are listed
 * @param {HeadSources | null} options.sources of a head that is opened
 * @param {(key: number) => string} options.nameOf a source
 * @returns {Step[]}
 */
export function waterfall(answer, { group, open, sources, nameOf }) {
  /** @type {Omit<Step, "from" | "to">[]} */
  const rows = group === "kind" ? kindRows(answer, sources, nameOf) : layerRows(answer, open, sources, nameOf);
  let sum = 0;
  return rows.map((row) => {
    const from = sum;
    // An opened part is a title over its parts, which carry the numbers.
    if (row.state !== "open") sum += row.value;
    return { ...row, from, to: row.state === "open" ? from + row.value : sum };
  });
}

/**
 * @param {Parts} answer
 * @param {number | null} open
 * @param {HeadSources | null} sources
 * @param {(key: number) => string} nameOf
 */
function layerRows({ rows, by_layer }, open, sources, nameOf) {
  return by_layer.flatMap((row, i) => {
    const isLayer = row.kind === "layer";
    const state = !isLayer ? "leaf" : row.layer === open ? "open" : "group";
    const title = plain(row, 0, `by_layer.${i}`, state);
    if (state !== "open") return [title];
    const parts = rows.flatMap((part, j) => (part.layer === open ? [{ part, path: `rows.${j}` }] : []));
    return [title, ...parts.flatMap(({ part, path }) => partRows(part, path, 1, sources, nameOf))];
  });
}

/**
 * Every kind of part, the strongest heads and MLPs by name, and the rest of each together.
 * @param {Parts} answer
 * @param {HeadSources | null} sources
 * @param {(key: number) => string} nameOf
 */
function kindRows({ rows }, sources, nameOf) {
  /** @type {Map<string, {part: AttributionRow, path: string}[]>} */
  const kinds = new Map();
  rows.forEach((part, j) => {
    const kind = kinds.get(part.kind) ?? [];
    kind.push({ part, path: `rows.${j}` });
    kinds.set(part.kind, kind);
  });
  return [...kinds].flatMap(([kind, parts]) => {
    const existing = parts.filter(({ part }) => Number.isFinite(valueOf(part.value)));
    if (existing.length === 1) return [plain(existing[0].part, 0, existing[0].path, "leaf")];
    const total = existing.reduce((sum, { part }) => sum + valueOf(part.value), 0);
    const strongest = [...existing].sort((a, b) => Math.abs(valueOf(b.part.value)) - Math.abs(valueOf(a.part.value)));
    const [named, others] = [strongest.slice(0, LISTED), strongest.slice(LISTED)];
    const title = { ...blank(`${existing.length} ${KINDS[kind] ?? kind}`, total, 0), state: /** @type {const} */ ("open") };
    const rest = others.reduce((sum, { part }) => sum + valueOf(part.value), 0);
    return [
      title,
      ...named.flatMap(({ part, path }) => partRows(part, path, 1, sources, nameOf)),
      ...(others.length ? [{ ...blank(`${others.length} others`, rest, 1), state: /** @type {const} */ ("rest") }] : []),
    ];
  });
}

/** @type {Record<string, string>} */
const KINDS = { head: "heads", mlp: "MLPs", attn_bias: "attention biases", attn: "attention layers without heads" };

/**
 * A part, and where it is the opened head, what came from each source.
 * @param {AttributionRow} part
 * @param {string} path
 * @param {number} level
 * @param {HeadSources | null} sources
 * @param {(key: number) => string} nameOf
 */
function partRows(part, path, level, sources, nameOf) {
  if (!Number.isFinite(valueOf(part.value))) return [];
  const isHead = part.kind === "head";
  const isOpen = isHead && sources !== null && sources.layer === part.layer && sources.head === part.head;
  const title = plain(part, level, path, isOpen ? "open" : isHead ? "group" : "leaf");
  if (!isOpen || !sources) return [title];
  const order = Array.from(sources.values, (_, key) => key).sort((a, b) => Math.abs(sources.values[b]) - Math.abs(sources.values[a]));
  const named = order.slice(0, LISTED).sort((a, b) => a - b);
  const others = order.slice(LISTED);
  const rest = others.reduce((sum, key) => sum + sources.values[key], 0);
  return [
    title,
    ...named.map((key) => ({ ...blank(`from ${nameOf(key)}`, sources.values[key], level + 1), key, layer: part.layer, head: part.head ?? null })),
    ...(others.length ? [{ ...blank(`${others.length} other sources`, rest, level + 1), state: /** @type {const} */ ("rest") }] : []),
  ];
}

/**
 * @param {AttributionRow} row
 * @param {number} level
 * @param {string} path
 * @param {Step["state"]} state
 */
function plain({ name, value, layer, head }, level, path, state) {
  return { ...blank(name, valueOf(value), level), path: `${path}.value`, layer: layer ?? null, head: head ?? null, state };
}

/**
 * @param {string} label
 * @param {number} value
 * @param {number} level
 * @returns {Omit<Step, "from" | "to">}
 */
function blank(label, value, level) {
  return { label, value, level, path: "", layer: null, head: null, key: null, state: "leaf" };
}

/**
 * The least and greatest running sum, zero included: where the staircase's axis begins and ends.
 * @param {Step[]} steps
 * @returns {[number, number]}
 */
export function extent(steps) {
  let [low, high] = [0, 0];
  for (const { from, to } of steps) {
    low = Math.min(low, from, to);
    high = Math.max(high, from, to);
  }
  return [low, high];
}
