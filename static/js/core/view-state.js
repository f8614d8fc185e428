/**
 * What is looked at, as one plain value, and how it is written in a query string.
 *
 * A link holds every field, so that it shows the same view when defaults change. Reading is forgiving: a value that
 * does not fit is replaced by the nearest that does, or by the default, and a notice says so.
 *
 * @typedef {Object} View
 * @property {number} layer
 * @property {number} head
 * @property {number} query position of the reader
 * @property {number} key position of the source
 * @property {number | null} target token id that effects are measured on; null: the top prediction
 * @property {number | null} foil token id that is subtracted from the target; null: none
 * @property {string} map what the chosen head's map shows
 * @property {string} mapscale how that map's amounts become colours
 * @property {string} first with or without the first token in the chosen head's map
 * @property {string} colour what colours the grid of heads: their patterns, or a summary
 * @property {string} order of the grid of heads: by layer, or by the summary
 * @property {string} quantity what the residual stream panel shows
 * @property {string} scale how the residual stream panel maps amounts to colours
 * @property {string} lens what the map of the logit lens shows
 * @property {string} group how the parts of a logit are grouped
 * @property {number | null} open layer whose parts are listed one by one; null: none
 * @property {number | null} openhead head of that layer whose sources are listed; null: none
 * @property {string} composition which input of later heads composition is measured for
 *
 * @typedef {Object} Dimensions how many there are of each
 * @property {number} layer
 * @property {number} head
 * @property {number} pos
 * @property {number} vocab
 *
 * @typedef {{kind: "index", along: keyof Dimensions, optional?: boolean} | {kind: "token"} | {kind: "choice", of: readonly string[]}} Field
 */

export const MAPS = /** @type {const} */ (["pattern", "message", "delivered", "effect"]);
export const MAP_SCALES = /** @type {const} */ (["linear", "log"]);
export const FIRST = /** @type {const} */ (["with", "without"]);
export const SUMMARIES = /** @type {const} */ ([
  "entropy", "distance", "previous_token", "first_token", "self", "duplicate_token", "induction", "write_norm", "attribution",
]);
export const COLOURS = /** @type {const} */ (["pattern", ...SUMMARIES]);
export const ORDERS = /** @type {const} */ (["layer", "value"]);
export const QUANTITIES = /** @type {const} */ ([
  "stream", "between", "attn_write", "mlp_write", "attn_along", "mlp_along",
  "embed_retention", "attn_retention", "mlp_retention", "held_attn", "held_mlp", "step_cosine", "cosine",
]);
export const SCALES = /** @type {const} */ (["log", "clipped", "linear"]);
export const LENSES = /** @type {const} */ (["probability", "rank", "entropy", "kl"]);
export const GROUPS = /** @type {const} */ (["layer", "kind"]);
export const COMPOSITIONS = /** @type {const} */ (["q", "k", "v"]);

/** @type {Record<keyof View, Field>} */
export const FIELDS = {
  layer: { kind: "index", along: "layer" },
  head: { kind: "index", along: "head" },
  query: { kind: "index", along: "pos" },
  key: { kind: "index", along: "pos" },
  target: { kind: "token" },
  foil: { kind: "token" },
  map: { kind: "choice", of: MAPS },
  mapscale: { kind: "choice", of: MAP_SCALES },
  first: { kind: "choice", of: FIRST },
  colour: { kind: "choice", of: COLOURS },
  order: { kind: "choice", of: ORDERS },
  quantity: { kind: "choice", of: QUANTITIES },
  scale: { kind: "choice", of: SCALES },
  lens: { kind: "choice", of: LENSES },
  group: { kind: "choice", of: GROUPS },
  open: { kind: "index", along: "layer", optional: true },
  openhead: { kind: "index", along: "head", optional: true },
  composition: { kind: "choice", of: COMPOSITIONS },
};

const NAMES = /** @type {(keyof View)[]} */ (Object.keys(FIELDS));

/**
 * Where an analysis opens when the link does not say.
 * @param {Dimensions} dimensions
 * @returns {View}
 */
export function defaultView(dimensions) {
  return {
    layer: Math.floor((dimensions.layer - 1) / 2),
    head: 0,
    query: dimensions.pos - 1,
    key: Math.max(0, dimensions.pos - 2),
    target: null,
    foil: null,
    map: "pattern",
    mapscale: "linear",
    first: "with",
    colour: "pattern",
    order: "layer",
    quantity: "stream",
    scale: "log",
    lens: "probability",
    group: "layer",
    open: null,
    openhead: null,
    composition: "k",
  };
}

/**
 * The view in a query string, with a sentence for every value that could not be taken as it stands.
 * @param {string} search
 * @param {Dimensions} dimensions
 * @param {View} [defaults]
 * @returns {{view: View, notices: string[]}}
 */
export function parseView(search, dimensions, defaults = defaultView(dimensions)) {
  const parameters = new URLSearchParams(search);
  const view = { ...defaults };
  /** @type {string[]} */
  const notices = [];
  for (const name of NAMES) {
    const text = parameters.get(name);
    if (text === null) continue;
    const { value, notice } = readField(name, text, dimensions, defaults[name]);
    /** @type {Record<string, unknown>} */ (view)[name] = value;
    if (notice) notices.push(notice);
  }
  return { view, notices };
}

/**
 * @param {keyof View} name
 * @param {string} text
 * @param {Dimensions} dimensions
 * @param {string | number | null} fallback
 * @returns {{value: string | number | null, notice?: string}}
 */
function readField(name, text, dimensions, fallback) {
  const field = FIELDS[name];
  const shown = text.length > 24 ? `${text.slice(0, 24)}…` : text;
  if (field.kind === "choice") {
    if (field.of.includes(text)) return { value: text };
    return { value: fallback, notice: `“${shown}” is no ${name}; shown instead: ${fallback}.` };
  }
  const size = field.kind === "token" ? dimensions.vocab : dimensions[field.along];
  if (!/^-?\d{1,15}$/.test(text)) {
    return { value: fallback, notice: `The link's ${name} “${shown}” is no number; shown instead: ${fallback ?? "none"}.` };
  }
  const number = Number(text);
  const nearest = Math.min(Math.max(number, 0), size - 1);
  if (nearest === number) return { value: number };
  if (field.kind === "token") return { value: fallback, notice: `There is no token with the id ${number}.` };
  return { value: nearest, notice: `There is no ${name} ${number} here (0 to ${size - 1}); shown instead: ${nearest}.` };
}

/**
 * The query string of a view, without the question mark.
 * @param {View} view
 */
export function formatView(view) {
  const parameters = new URLSearchParams();
  for (const name of NAMES) {
    const value = view[name];
    if (value !== null) parameters.set(name, String(value));
  }
  return parameters.toString();
}

/**
 * The view with a change applied, every index brought into its range.
 * @param {View} view
 * @param {Partial<View>} change
 * @param {Dimensions} dimensions
 * @returns {View}
 */
export function changedView(view, change, dimensions) {
  const next = { ...view, ...change };
  for (const name of /** @type {const} */ (["layer", "head", "query", "key"])) {
    const field = /** @type {{kind: "index", along: keyof Dimensions}} */ (FIELDS[name]);
    next[name] = Math.min(Math.max(next[name], 0), dimensions[field.along] - 1);
  }
  return next;
}
