/**
 * The residual stream over layers and tokens, and what attention and the MLPs wrote into it.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/types.js").Tensor} Tensor
 */
import { tensorUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { createChoices } from "../core/choices.js";
import { el } from "../core/dom.js";
import { number } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { scaleAmounts } from "../core/scale.js";
import { touches } from "../core/store.js";
import { createHeatmap } from "../plot/heatmap.js";

/** @type {Record<string, {tensor: string, text: string, about: string}>} */
const WORDS = {
  stream: {
    tensor: "stream_norm",
    text: "Stream",
    about: "Norm of the residual stream for each token (column): embed is what enters layer 0, and row l what layer l leaves. The stream flows upwards.",
  },
  attn_write: {
    tensor: "attn_write_norm",
    text: "Attention writes",
    about: "Norm of what attention added to the stream, for each layer (row, upwards) and token (column).",
  },
  mlp_write: {
    tensor: "mlp_write_norm",
    text: "MLP writes",
    about: "Norm of what the MLP added to the stream, for each layer (row, upwards) and token (column).",
  },
};
const ROW_PX = 13.5;
const LEAST_MAP_PX = 160;
const MOST_MAP_PX = 560;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createStream(root, store) {
  const labels = store.analysis.tokens.map(({ label }) => label);
  const panel = createPanel(root, { name: "stream", title: "Residual stream", about: WORDS.stream.about });
  const quantities = createChoices({
    label: "Quantity",
    options: Object.entries(WORDS).map(([value, { text }]) => ({ value, text })),
    onChoose: (quantity) => store.set({ quantity }),
  });
  const scales = createChoices({
    label: "Scale",
    options: [
      { value: "log", text: "Log" },
      { value: "clipped", text: "Clipped", title: "Linear, cut at the 98th percentile" },
      { value: "linear", text: "Linear" },
    ],
    onChoose: (scale) => store.set({ scale }),
  });
  panel.tools.append(quantities.element, scales.element);
  const place = el("div");
  const scaleWords = el("p", { class: "panel-note" });
  panel.body.append(place, scaleWords);

  const rowOffset = () => (store.view().quantity === "stream" ? 1 : 0);
  const heatmap = createHeatmap(place, {
    onPick(row, col, quick) {
      // Row 0 of the stream is the embedding, which no layer has made; the nearest layer is the first.
      const layer = row === null ? {} : { layer: Math.max(0, row - rowOffset()) };
      store.set({ ...layer, ...(col === null ? {} : { query: col }) }, { quick });
    },
    onNote: panel.note,
  });
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {Tensor | null} */
  let tensor = null;

  function load() {
    const { quantity } = store.view();
    panel.wait("Loading the norms…");
    latest.run(async (signal) => {
      tensor = await store.tensors.get(tensorUrl(store.analysis.id, WORDS[quantity].tensor), signal);
      await show();
      panel.wait(null);
    });
  }

  const marks = () => ({ row: store.view().layer + rowOffset(), col: store.view().query });

  function show() {
    if (!tensor) return Promise.resolve();
    const { quantity, scale } = store.view();
    const [rows, cols] = tensor.shape;
    const norms = tensor.values;
    const scaled = scaleAmounts(norms, scale);
    scaleWords.textContent = `Colours: ${scaled.words}.`;
    const offset = rowOffset();
    /** @param {number} row */
    const rowName = (row) => (offset && row === 0 ? "embed" : `layer ${row - offset}`);
    return heatmap.draw(
      {
        values: scaled.values,
        mask: null,
        rows,
        cols,
        rowLabels: Array.from({ length: rows }, (_, row) => (offset && row === 0 ? "embed" : String(row - offset))),
        colLabels: labels,
        rowTitle: "layer",
        colTitle: "token",
        upward: true,
        rowsAreTokens: false,
        rowAccent: "ink",
        colAccent: "query",
        colours: "sequential",
        range: scaled.range,
        ticks: scaled.ticks,
        unit: `norm, ${scale} scale`,
        strip: null,
        height: () => Math.min(Math.max(rows * ROW_PX, LEAST_MAP_PX), MOST_MAP_PX),
        label: `${WORDS[quantity].text}: norm for each layer and token. Arrow keys move layer and query.`,
        describe: (row, col) => [`${rowName(row)}, token ${col} ${labels[col]}`, `norm ${number(norms[row * cols + col], 4)}`],
      },
      marks(),
    );
  }

  const end = store.subscribe((change) => {
    const { view } = change;
    if (touches(change, "quantity", "scale")) {
      quantities.show(view.quantity);
      scales.show(view.scale);
      panel.about(WORDS[view.quantity].about);
    }
    if (touches(change, "quantity")) load();
    else if (touches(change, "scale")) show();
    else if (touches(change, "layer", "query")) heatmap.mark(marks());
    if (touches(change, "layer", "query")) panel.chosen(`layer ${view.layer} token ${view.query}`);
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
