/**
 * Every head of the model as a small picture of its pattern, all on one canvas.
 * @typedef {import("../core/store.js").Store} Store
 */
import { tensorUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { el } from "../core/dom.js";
import { arrowStep } from "../core/keys.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { touches } from "../core/store.js";
import { onTheme, palette } from "../core/theme.js";
import { atlas, atlasCanvas } from "../core/thumbnails.js";
import { hideTooltip, showTooltip, tooltipLines } from "../core/tooltip.js";

const GAP_PX = 2;
const LABEL_PX = 26;
const LEAST_CELL_PX = 12;
const MOST_CELL_PX = 44;
// All layers of a common model then fit beside the chosen head.
const AIMED_HEIGHT_PX = 740;
const PREVIEW_PX = 160;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createHeads(root, store) {
  const { layer: nLayers, head: nHeads } = store.dimensions;
  const panel = createPanel(root, {
    name: "heads",
    title: "Every head",
    about: "Pattern of each head: layers upwards, heads across; in each picture readers go down and sources across. Each has its own scale, up to its largest weight.",
  });
  const canvas = el("canvas", { class: "heads-canvas", tabIndex: 0, role: "application" });
  const scroll = el("div", { class: "heads-scroll" }, canvas);
  const key = el(
    "p",
    { class: "scale-key" },
    el("span", {}, el("i", { class: "swatch amounts" }), "0 to the head’s largest"),
    el("span", {}, el("i", { class: "swatch unseen" }), "cannot see"),
  );
  panel.body.append(scroll, key);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

  /** @type {import("../api/types.js").Tensor | null} */
  let thumbnails = null;
  /** @type {HTMLCanvasElement | null} */
  let pictures = null;
  let cell = LEAST_CELL_PX;
  const latest = createLatest((error) => panel.fail(asFailure(error), load));

  function load() {
    panel.wait("Loading the pictures…");
    latest.run(async (signal) => {
      thumbnails = await store.tensors.get(tensorUrl(store.analysis.id, "thumbnails"), signal);
      pictures = atlasCanvas(atlas(thumbnails.values, thumbnails.shape, palette()));
      panel.wait(null);
      draw();
    });
  }

  /** @param {number} layer @param {number} head */
  const cornerOf = (layer, head) => ({ x: LABEL_PX + head * (cell + GAP_PX), y: GAP_PX + (nLayers - 1 - layer) * (cell + GAP_PX) });

  function draw() {
    if (!thumbnails || !pictures || scroll.clientWidth === 0) return;
    const colours = palette();
    const across = Math.floor((scroll.clientWidth - LABEL_PX - 2) / nHeads) - GAP_PX;
    const down = Math.floor(AIMED_HEIGHT_PX / nLayers) - GAP_PX;
    cell = Math.min(Math.max(Math.min(across, Math.max(down, 22)), LEAST_CELL_PX), MOST_CELL_PX);
    const width = LABEL_PX + nHeads * (cell + GAP_PX) + GAP_PX;
    const height = GAP_PX + nLayers * (cell + GAP_PX) + 18;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const [, , rows, cols] = thumbnails.shape;
    context.imageSmoothingEnabled = cell * ratio < rows;
    context.imageSmoothingQuality = "high";
    for (let layer = 0; layer < nLayers; layer++) {
      for (let head = 0; head < nHeads; head++) {
        const { x, y } = cornerOf(layer, head);
        context.drawImage(pictures, head * cols, (nLayers - 1 - layer) * rows, cols, rows, x, y, cell, cell);
      }
    }
    labels(colours, height);
    outline(colours);
  }

  /** @param {import("../core/theme.js").Palette} colours @param {number} height */
  function labels(colours, height) {
    const { layer: chosenLayer, head: chosenHead } = store.view();
    context.textBaseline = "middle";
    context.textAlign = "right";
    const every = cell + GAP_PX >= 12 ? 1 : 2;
    for (let layer = 0; layer < nLayers; layer++) {
      if (layer % every && layer !== chosenLayer) continue;
      context.font = `${layer === chosenLayer ? "bold " : ""}10px ${colours.mono}`;
      context.fillStyle = layer === chosenLayer ? colours.ink : colours.muted;
      context.fillText(String(layer), LABEL_PX - 6, cornerOf(layer, 0).y + cell / 2);
    }
    context.textAlign = "center";
    for (let head = 0; head < nHeads; head++) {
      if (cell < 16 && head % 2 && head !== chosenHead) continue;
      context.font = `${head === chosenHead ? "bold " : ""}10px ${colours.mono}`;
      context.fillStyle = head === chosenHead ? colours.ink : colours.muted;
      context.fillText(String(head), cornerOf(0, head).x + cell / 2, height - 8);
    }
  }

  /** @param {import("../core/theme.js").Palette} colours */
  function outline(colours) {
    const { layer, head } = store.view();
    const { x, y } = cornerOf(layer, head);
    context.lineWidth = 2;
    context.strokeStyle = colours.ink;
    context.strokeRect(x - 1, y - 1, cell + 2, cell + 2);
  }

  /**
   * @param {MouseEvent} event
   * @returns {{layer: number, head: number} | null}
   */
  function headAt(event) {
    const box = canvas.getBoundingClientRect();
    const head = Math.floor((event.clientX - box.left - LABEL_PX) / (cell + GAP_PX));
    const fromTop = Math.floor((event.clientY - box.top - GAP_PX) / (cell + GAP_PX));
    const layer = nLayers - 1 - fromTop;
    return head >= 0 && head < nHeads && layer >= 0 && layer < nLayers ? { layer, head } : null;
  }

  /** @param {number} layer @param {number} head */
  function preview(layer, head) {
    const picture = el("canvas", { width: PREVIEW_PX, height: PREVIEW_PX });
    const drawing = picture.getContext("2d");
    if (drawing && pictures && thumbnails) {
      const [, , rows, cols] = thumbnails.shape;
      drawing.imageSmoothingEnabled = false;
      drawing.drawImage(pictures, head * cols, (nLayers - 1 - layer) * rows, cols, rows, 0, 0, PREVIEW_PX, PREVIEW_PX);
    }
    return [...tooltipLines([`Layer ${layer}, head ${head}`]), picture];
  }

  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const found = headAt(event);
    if (found) showTooltip(preview(found.layer, found.head), event.clientX, event.clientY);
    else hideTooltip();
  });
  canvas.addEventListener("pointerleave", hideTooltip);
  canvas.addEventListener("click", (event) => {
    const found = headAt(event);
    if (found) store.set(found);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = arrowStep(event);
    if (!step) return;
    event.preventDefault();
    const { layer, head } = store.view();
    store.set({ layer: layer - step.down, head: head + step.right }, { quick: true });
  });

  function keepInSight() {
    const { y } = cornerOf(store.view().layer, 0);
    if (y < scroll.scrollTop) scroll.scrollTop = y - GAP_PX;
    else if (y + cell > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y + cell - scroll.clientHeight + GAP_PX;
  }

  const end = store.subscribe((change) => {
    if (!touches(change, "layer", "head")) return;
    const { layer, head } = change.view;
    panel.chosen(`layer ${layer} head ${head}`);
    canvas.setAttribute("aria-label", `Every head, ${nLayers} layers of ${nHeads}; chosen: layer ${layer}, head ${head}. Arrow keys move.`);
    draw();
    keepInSight();
  });
  const endTheme = onTheme(() => {
    if (thumbnails) pictures = atlasCanvas(atlas(thumbnails.values, thumbnails.shape, palette()));
    draw();
  });
  const observer = new ResizeObserver(draw);
  observer.observe(scroll);
  load();

  return {
    destroy() {
      end();
      endTheme();
      observer.disconnect();
      latest.cancel();
      panel.section.remove();
    },
  };
}
