/** The page's pure modules: decoding, view state, pooling, scales, words, labels. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeArray, decodeTensor } from "../../static/js/api/arrays.js";
import { Failure } from "../../static/js/api/errors.js";
import { counted, number, percent, scientific, shortened } from "../../static/js/core/format.js";
import { createLatest } from "../../static/js/core/latest.js";
import { largestFirst } from "../../static/js/core/opening.js";
import { maxSeen, poolMax } from "../../static/js/core/pool.js";
import { quantile, scaleAmounts, scaleMap } from "../../static/js/core/scale.js";
import { createStore, touches } from "../../static/js/core/store.js";
import { atlas } from "../../static/js/core/thumbnails.js";
import { changedView, defaultView, formatView, parseView } from "../../static/js/core/view-state.js";
import { EXAMPLES } from "../../static/js/pages/examples.js";
import { escapeLabel, tickLabel, tickPositions } from "../../static/js/plot/labels.js";

const DIMENSIONS = { layer: 30, head: 9, pos: 14, vocab: 49152 };

/** @param {ArrayBufferView} array */
const base64 = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString("base64");

test("a typed array comes back as it was sent, NaN and infinity included", () => {
  const sent = new Float32Array([1.5, -0, NaN, Infinity, 3e-38, 2]);
  const { values, shape } = decodeArray({ dtype: "f4", shape: "2,3", bdata: base64(sent) });
  assert.deepEqual(shape, [2, 3]);
  assert.ok(values instanceof Float32Array);
  assert.deepEqual([...values], [...sent]);
});

test("every dtype of the interface is read", () => {
  for (const [dtype, array] of /** @type {const} */ ([
    ["f8", new Float64Array([0.1])], ["u1", new Uint8Array([255])], ["u2", new Uint16Array([65535])],
    ["u4", new Uint32Array([4294967295])], ["i2", new Int16Array([-2])], ["i4", new Int32Array([-3])],
  ])) {
    assert.equal(decodeArray({ dtype, shape: "1", bdata: base64(array) }).values[0], array[0]);
  }
});

test("bytes that do not fit their shape are an error, not a shorter array", () => {
  const bdata = base64(new Float32Array(5));
  assert.throws(() => decodeArray({ dtype: "f4", shape: "2,3", bdata }), Failure);
  assert.throws(() => decodeArray({ dtype: "f2", shape: "10", bdata }), Failure);
});

test("a mask of another size is an error", () => {
  const envelope = {
    name: "pattern", axes: ["query_pos", "key_pos"], unit: "probability", about: "", fixed: {},
    data: { dtype: "f4", shape: "1,2", bdata: base64(new Float32Array(2)) },
    mask: { dtype: "u1", shape: "1,1", bdata: base64(new Uint8Array(1)) },
  };
  assert.throws(() => decodeTensor(/** @type {any} */ (envelope)), Failure);
});

test("a view that is written is the view that is read", () => {
  const view = { ...defaultView(DIMENSIONS), layer: 3, head: 7, query: 12, key: 4, target: 288, map: "delivered", scale: "linear" };
  const { view: read, notices } = parseView(`?${formatView(view)}`, DIMENSIONS);
  assert.deepEqual(read, view);
  assert.deepEqual(notices, []);
});

test("what a link asks for beyond the analysis is brought into range, with a sentence for each", () => {
  const { view, notices } = parseView("?layer=99&head=-4&query=abc&map=%3Cb%3E&target=99999999", DIMENSIONS);
  assert.equal(view.layer, 29);
  assert.equal(view.head, 0);
  assert.equal(view.query, 13);
  assert.equal(view.map, "pattern");
  assert.equal(view.target, null);
  assert.equal(notices.length, 5);
});

test("a change never leaves the ranges", () => {
  const view = changedView(defaultView(DIMENSIONS), { layer: 30, query: -1 }, DIMENSIONS);
  assert.equal(view.layer, 29);
  assert.equal(view.query, 0);
});

test("the store tells every listener once, and only of changes", () => {
  const store = createStore(/** @type {any} */ ({}), /** @type {any} */ ({}), DIMENSIONS, defaultView(DIMENSIONS));
  /** @type {number[]} */
  const heard = [];
  store.subscribe((change) => touches(change, "head") && heard.push(change.view.head));
  store.set({ head: 5 });
  store.set({ head: 5 });
  store.set({ query: 2 });
  assert.deepEqual(heard, [0, 5]);
});

test("the last of several listeners hears the newest view when one of them changes it again", () => {
  const store = createStore(/** @type {any} */ ({}), /** @type {any} */ ({}), DIMENSIONS, defaultView(DIMENSIONS));
  store.subscribe(({ view }) => view.head === 1 && store.set({ head: 2 }));
  /** @type {number[]} */
  const heard = [];
  store.subscribe(({ view }) => heard.push(view.head));
  store.set({ head: 1 });
  assert.deepEqual(heard, [0, 2]);
});

test("a bright cell survives pooling, and what cannot be seen stays apart from zero", () => {
  const values = new Float32Array(16);
  values[1 * 4 + 0] = 0.9;
  const mask = Uint8Array.from([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]);
  const { rows, down, across } = poolMax(values, mask, 4, { top: 0, bottom: 4, left: 0, right: 4 }, 2);
  assert.deepEqual([down, across], [2, 2]);
  assert.equal(rows[0][0], Math.fround(0.9));
  assert.ok(Number.isNaN(rows[0][1]));
  assert.equal(rows[1][0], 0);
});

test("a window with an odd number of cells loses none of them", () => {
  const values = Float32Array.from({ length: 25 }, (_, i) => i);
  const { rows } = poolMax(values, null, 5, { top: 0, bottom: 5, left: 0, right: 5 }, 2);
  assert.equal(Math.max(...rows.flatMap((row) => [...row])), 24);
});

test("the largest value that can be seen leaves out what cannot", () => {
  assert.equal(maxSeen([1, 5, 3], Uint8Array.from([1, 0, 1])), 3);
  assert.equal(maxSeen([], null), 0);
});

test("a logarithmic scale keeps one huge norm from flattening the rest, and says what it is", () => {
  const { values, range, words } = scaleAmounts([1, 10, 100_000, 0], "log");
  assert.deepEqual([...values].map((value) => Math.round(value * 10) / 10), [0, 1, 5, 0]);
  assert.deepEqual(range, [0, 5]);
  assert.match(words, /logarithmic/);
});

test("a clipped scale says where it is cut and what lies above", () => {
  const amounts = [...Array.from({ length: 99 }, (_, i) => i / 10), 5000];
  const { range, words, ticks } = scaleAmounts(amounts, "clipped");
  assert.ok(range[1] < 500);
  assert.match(words, /98th percentile.*5,000/);
  assert.match(ticks[4].label, /^≥ /);
});

test("a map on a logarithmic scale begins four powers of ten below its largest weight", () => {
  const { values, range } = scaleMap([1, 1e-9, NaN], 1, "log");
  assert.deepEqual(range, [-4, 0]);
  assert.equal(values[1], -4);
  assert.ok(Number.isNaN(values[2]));
});

test("quantiles interpolate", () => {
  assert.equal(quantile([0, 10], 0.25), 2.5);
  assert.equal(quantile([], 0.5), 0);
});

test("numbers are written with the digits that mean something, and what does not exist is no zero", () => {
  assert.equal(number(0.03124), "0.0312");
  assert.equal(number(12_400.4), "12,400");
  assert.equal(number(-1.5), "−1.50");
  assert.equal(number(0.99996), "1.00");
  assert.equal(number(null), "–");
  assert.equal(number("NaN"), "not a number");
  assert.equal(number("-Infinity"), "−∞");
  assert.equal(scientific(0.000034), "3.4e−5");
  assert.equal(percent(0.9231), "92.3 %");
  assert.equal(percent(0.00001), "< 0.01 %");
  assert.equal(counted(1, "token"), "1 token");
});

test("a character is never cut in two", () => {
  assert.equal(shortened("👍🏽👍🏽👍🏽", 2), "👍🏽…");
  assert.equal(shortened("abc", 3), "abc");
});

test("labels reach the plot as typed", () => {
  assert.equal(escapeLabel("<b>a&amp;b</b>"), "&lt;b&gt;a&amp;amp;b&lt;/b&gt;");
  assert.ok(!tickLabel(3, "<script>", 20).includes("<"));
  assert.match(tickLabel(3, "x", 20), / 3$/);
});

test("ticks fit their room, and the chosen one is always there", () => {
  assert.deepEqual(tickPositions(0, 5, 10), [0, 1, 2, 3, 4]);
  const many = tickPositions(0, 1000, 20, 333);
  assert.ok(many.length <= 22);
  assert.ok(many.includes(333));
  assert.ok(!many.includes(350));
});

test("pictures of heads stand with layer 0 at the bottom, and above the diagonal nothing can be seen", () => {
  const bytes = Uint8Array.from([255, 0, 0, 0, 0, 0, 0, 255]);
  const palette = { sequential: /** @type {any} */ ([[0, 0, 0], [255, 255, 255]]), unseen: "#ff0000" };
  const { words, width, height } = atlas(bytes, [2, 1, 2, 2], palette);
  assert.deepEqual([width, height], [2, 4]);
  // Layer 1 is on top: its last pixel is its largest weight. Layer 0 is below: its first pixel is.
  assert.equal(words[3], words[4]);
  assert.equal(words[1], words[5]);
  assert.notEqual(words[1], words[0]);
});

test("a question that has been given up is not heard of again", async () => {
  /** @type {unknown[]} */
  const errors = [];
  const latest = createLatest((error) => errors.push(error));
  /** @type {string[]} */
  const shown = [];
  /** @param {string} name @param {Promise<void>} until */
  const ask = (name, until) =>
    latest.run(async (signal) => {
      await until;
      signal.throwIfAborted();
      shown.push(name);
    });
  let release = () => {};
  const first = ask("first", new Promise((resolve) => (release = resolve)));
  const second = ask("second", Promise.resolve());
  release();
  await Promise.all([first, second]);
  assert.deepEqual(shown, ["second"]);
  assert.deepEqual(errors, []);
});

test("indices come in the order of their values", () => {
  assert.deepEqual(largestFirst([1, 3, 2]), [1, 2, 0]);
});

test("there are five examples, each with something to look for", () => {
  assert.equal(EXAMPLES.length, 5);
  for (const { title, text, why } of EXAMPLES) assert.ok(title && text && why.length > 40);
});
