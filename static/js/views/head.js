/**
 * The chosen head: a map of readers and sources, and the norm of every source's message under it.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../core/head-data.js").HeadData} HeadData
 * @typedef {import("../plot/figure.js").MapSpec} MapSpec
 */
import { asFailure } from "../api/errors.js";
import { createChoices } from "../core/choices.js";
import { el } from "../core/dom.js";
import { number } from "../core/format.js";
import { isSeen, loadHead, mapValues } from "../core/head-data.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { maxSeen } from "../core/pool.js";
import { scaleMap } from "../core/scale.js";
import { touches } from "../core/store.js";
import { createHeatmap } from "../plot/heatmap.js";

/** @type {Record<string, {text: string, unit: string, about: string}>} */
const WORDS = {
  pattern: {
    text: "Pattern A",
    unit: "probability",
    about: "Where each reader (row) looks: the share of its attention on each source (column); a row adds up to 1.",
  },
  message: {
    text: "Message ‖m‖",
    unit: "norm",
    about: "How large the message is that each source (column) offers through this head, wherever a reader (row) can see it. A message does not depend on its reader.",
  },
  delivered: {
    text: "Delivered A‖m‖",
    unit: "norm",
    about: "What arrives: the pattern times the message’s norm, for each reader (row) and source (column).",
  },
};

const LEAST_MAP_PX = 320;
const MAP_SHARE = 0.62;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createHead(root, store) {
  const { tokens } = store.analysis;
  const labels = tokens.map(({ label }) => label);
  const panel = createPanel(root, { name: "head", title: "The chosen head", about: WORDS.pattern.about });
  const maps = createChoices({
    label: "Map",
    options: Object.entries(WORDS).map(([value, { text }]) => ({ value, text })),
    onChoose: (map) => store.set({ map }),
  });
  const scales = createChoices({
    label: "Scale",
    options: [
      { value: "linear", text: "Linear" },
      { value: "log", text: "Log", title: "Shows small weights: equal steps of colour are equal ratios" },
    ],
    onChoose: (mapscale) => store.set({ mapscale }),
  });
  panel.tools.append(maps.element, scales.element);
  const place = el("div");
  panel.body.append(place);
  panel.body.append(
    el(
      "p",
      { class: "scale-key" },
      el("span", {}, el("i", { class: "swatch query" }), "row of the query"),
      el("span", {}, el("i", { class: "swatch key" }), "column of the key"),
      el("span", {}, el("i", { class: "swatch unseen" }), "cannot see: later than the reader, or outside its window"),
      el("span", {}, "Click chooses a cell; drag enlarges a part."),
    ),
  );
  const heatmap = createHeatmap(place, {
    onPick: (row, col, quick) => store.set({ ...(row === null ? {} : { query: row }), ...(col === null ? {} : { key: col }) }, { quick }),
    onNote: panel.note,
  });
  const latest = createLatest((error) => panel.fail(asFailure(error), load));

  /** @type {HeadData | null} */
  let data = null;

  function load() {
    const { layer, head } = store.view();
    panel.wait(`Computing layer ${layer}, head ${head}…`);
    latest.run(async (signal) => {
      data = await loadHead(store, layer, head, signal);
      await show();
      panel.wait(null);
    });
  }

  const marks = () => ({ row: store.view().query, col: store.view().key });

  function show() {
    if (!data) return Promise.resolve();
    return heatmap.draw(specOf(data, store.view(), labels), marks());
  }

  const end = store.subscribe((change) => {
    const { view } = change;
    if (touches(change, "map", "mapscale")) {
      maps.show(view.map);
      scales.show(view.mapscale);
      panel.about(WORDS[view.map].about);
    }
    if (touches(change, "layer", "head")) {
      panel.chosen(`layer ${view.layer} head ${view.head}`);
      load();
    } else if (touches(change, "map", "mapscale")) {
      show();
    } else if (touches(change, "query", "key")) {
      heatmap.mark(marks());
    }
  });

  return {
    destroy() {
      end();
      latest.cancel();
      heatmap.destroy();
      panel.section.remove();
    },
  };
}

/**
 * @param {HeadData} data
 * @param {import("../core/view-state.js").View} view
 * @param {string[]} labels
 * @returns {MapSpec}
 */
function specOf(data, { map, mapscale }, labels) {
  const values = mapValues(data, map);
  const scaled = scaleMap(values, maxSeen(values, data.mask), mapscale);
  /** @param {number} at */
  const token = (at) => `${at} ${labels[at]}`;
  return {
    values: scaled.values,
    mask: data.mask,
    rows: data.pos,
    cols: data.pos,
    rowLabels: labels,
    colLabels: labels,
    rowTitle: "reader (query)",
    colTitle: "source (key)",
    upward: false,
    rowsAreTokens: true,
    rowAccent: "query",
    colAccent: "key",
    colours: "sequential",
    range: scaled.range,
    ticks: scaled.ticks,
    unit: `${WORDS[map].text}, ${WORDS[map].unit}, ${scaled.words} scale`,
    // Square, unless the map would not fit on the screen in one piece.
    height: (width) => Math.min(width, Math.max(LEAST_MAP_PX, window.innerHeight * MAP_SHARE)),
    label: `${WORDS[map].text} of layer ${data.layer}, head ${data.head}: readers down, sources across. Arrow keys move the chosen cell.`,
    strip: {
      values: data.message,
      title: "‖m‖",
      describe: (col) => [token(col), `message norm ${number(data.message[col])}`],
    },
    describe(row, col) {
      const pair = `${token(row)}  ←  ${token(col)}`;
      if (!isSeen(data, row, col)) return [pair, "cannot see this source"];
      const weight = data.pattern[row * data.pos + col];
      return [pair, `pattern ${number(weight)}`, `message norm ${number(data.message[col])}`, `delivered ${number(weight * data.message[col])}`];
    },
  };
}
