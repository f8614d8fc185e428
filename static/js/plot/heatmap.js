/**
 * A large map with rows, columns, a colour bar and marks. Large maps are pooled by maximum to the size they are drawn
 * at, and drawn cell by cell again when zoomed into.
 *
 * @typedef {import("./figure.js").MapSpec} MapSpec
 * @typedef {import("./figure.js").Marks} Marks
 * @typedef {import("../core/pool.js").Window} Window
 * @typedef {import("../core/pool.js").Pooled} Pooled
 * @typedef {import("./library.js").PlotlyElement} PlotlyElement
 * @typedef {import("./library.js").PlotlyPoint} PlotlyPoint
 *
 * @typedef {Object} Heatmap
 * @property {(spec: MapSpec, marks: Marks) => Promise<void>} draw
 * @property {(marks: Marks) => void} mark moves the marks without drawing the map again
 * @property {() => void} destroy
 */
import { el } from "../core/dom.js";
import { arrowStep } from "../core/keys.js";
import { poolMax } from "../core/pool.js";
import { onTheme, palette } from "../core/theme.js";
import { hideTooltip, showTooltip, tooltipLines } from "../core/tooltip.js";
import { figure } from "./figure.js";
import { loadPlotly } from "./plotly.js";

// More cells than this along one side are pooled: no screen shows them apart.
export const MOST_CELLS = 600;

/**
 * @param {HTMLElement} root
 * @param {Object} options
 * @param {(row: number | null, col: number | null, quick: boolean) => void} options.onPick null: as it was
 * @param {(text: string) => void} [options.onNote] says what the drawing leaves out, "" for nothing
 * @returns {Heatmap}
 */
export function createHeatmap(root, { onPick, onNote = () => {} }) {
  const plot = el("div", { class: "plot" });
  const frame = el("div", { class: "plot-frame", tabIndex: 0, role: "group" }, plot);
  root.append(frame);
  const canDrag = matchMedia("(pointer: fine)").matches;
  const config = {
    displaylogo: false, displayModeBar: false, doubleClick: false, typesetMath: false, scrollZoom: false, showTips: false,
  };

  /** @type {MapSpec | null} */
  let spec = null;
  /** @type {Marks} */
  let marks = { row: null, col: null };
  /** @type {Window | null} what is zoomed into; null: everything */
  let zoom = null;
  /** @type {Pooled | null} kept while map and window stay: Plotly draws again only what is a new array */
  let pooled = null;
  let listening = false;
  let drawnWidth = 0;
  let destroyed = false;

  async function render() {
    const library = await loadPlotly();
    if (destroyed || !spec || frame.clientWidth === 0) return;
    const window = zoom ?? { top: 0, bottom: spec.rows, left: 0, right: spec.cols };
    drawnWidth = frame.clientWidth;
    pooled ??= poolMax(spec.values, spec.mask, spec.cols, window, MOST_CELLS);
    const { traces, layout } = figure(spec, pooled, window, marks, palette(), drawnWidth, canDrag);
    frame.setAttribute("aria-label", spec.label);
    onNote(note(pooled, zoom !== null));
    const element = await library.react(plot, traces, layout, config);
    if (!listening) listen(element);
  }

  /** @param {PlotlyElement} element */
  function listen(element) {
    listening = true;
    element.on("plotly_hover", ({ points, event }) => {
      const lines = describe(points[0]);
      if (lines) showTooltip(tooltipLines(lines), event.clientX, event.clientY);
    });
    element.on("plotly_unhover", hideTooltip);
    element.on("plotly_click", ({ points }) => {
      const { row, col } = cellOf(points[0]);
      onPick(row, col, false);
    });
    element.on("plotly_doubleclick", resetZoom);
    element.on("plotly_relayout", (change) => {
      const window = windowOf(change);
      if (!window) return;
      zoom = window;
      pooled = null;
      render();
    });
  }

  function resetZoom() {
    if (!zoom) return;
    zoom = null;
    pooled = null;
    render();
  }

  /**
   * The zoomed window, widened to whole cells.
   * @param {Record<string, unknown>} change
   * @returns {Window | null}
   */
  function windowOf(change) {
    if (!spec || !("xaxis.range[0]" in change || "yaxis.range[0]" in change)) return null;
    const now = zoom ?? { top: 0, bottom: spec.rows, left: 0, right: spec.cols };
    /** @param {string} name @param {number} low @param {number} high @param {number} size */
    const side = (name, low, high, size) => {
      const [a, b] = [change[`${name}.range[0]`], change[`${name}.range[1]`]];
      if (typeof a !== "number" || typeof b !== "number") return [low, high];
      const start = Math.min(Math.max(Math.floor(Math.min(a, b) + 0.5), 0), size - 1);
      return [start, Math.min(Math.max(Math.ceil(Math.max(a, b) + 0.5), start + 1), size)];
    };
    const [left, right] = side("xaxis", now.left, now.right, spec.cols);
    const [top, bottom] = side("yaxis", now.top, now.bottom, spec.rows);
    return { top, bottom, left, right };
  }

  /**
   * The cell under a point; of a pooled block, its largest.
   * @param {PlotlyPoint} point
   * @returns {{row: number | null, col: number}}
   */
  function cellOf(point) {
    if (!spec || !pooled) return { row: null, col: 0 };
    if (point.curveNumber === 1) return { row: null, col: Math.round(point.x) };
    const { down, across } = pooled;
    let [row, col] = [Math.round(point.y - (down - 1) / 2), Math.round(point.x - (across - 1) / 2)];
    if (down * across === 1) return { row, col };
    let best = -Infinity;
    const [rowEnd, colEnd] = [Math.min(row + down, spec.rows), Math.min(col + across, spec.cols)];
    for (let i = row, left = col; i < rowEnd; i++) {
      for (let j = left; j < colEnd; j++) {
        const at = i * spec.cols + j;
        if (spec.mask && !spec.mask[at]) continue;
        if (spec.values[at] > best) [best, row, col] = [spec.values[at], i, j];
      }
    }
    return { row, col };
  }

  /** @param {PlotlyPoint} point */
  function describe(point) {
    if (!spec || !pooled) return null;
    const { row, col } = cellOf(point);
    if (row === null) return spec.strip?.describe(col) ?? null;
    const lines = spec.describe(row, col);
    const { down, across } = pooled;
    return down * across === 1 ? lines : [...lines, `largest of the ${down} × ${across} cells drawn as one`];
  }

  frame.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && zoom) {
      resetZoom();
      return;
    }
    const step = arrowStep(event);
    if (!step || !spec || marks.row === null) return;
    event.preventDefault();
    const row = Math.min(Math.max(marks.row + (spec.upward ? -step.down : step.down), 0), spec.rows - 1);
    const col = marks.col === null ? null : Math.min(Math.max(marks.col + step.right, 0), spec.cols - 1);
    onPick(row, col, true);
  });
  frame.addEventListener("mouseleave", hideTooltip);

  const observer = new ResizeObserver(() => {
    if (spec && Math.abs(frame.clientWidth - drawnWidth) > 1) render();
  });
  observer.observe(frame);
  const endTheme = onTheme(() => render());

  return {
    draw(nextSpec, nextMarks) {
      if (spec && (spec.rows !== nextSpec.rows || spec.cols !== nextSpec.cols)) zoom = null;
      spec = nextSpec;
      pooled = null;
      marks = nextMarks;
      return render();
    },
    mark(nextMarks) {
      marks = nextMarks;
      if (spec && pooled) render();
    },
    destroy() {
      destroyed = true;
      observer.disconnect();
      endTheme();
      window.Plotly?.purge(plot);
      root.replaceChildren();
    },
  };
}

/**
 * @param {Pooled} pooled
 * @param {boolean} zoomed
 */
function note({ down, across }, zoomed) {
  const back = zoomed ? " Double-click, or Escape, shows everything again." : "";
  if (down * across === 1) return back.trim();
  return `Each drawn cell is the largest of ${down} × ${across} cells; drag over a part to see every cell.${back}`;
}
