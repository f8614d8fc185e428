/**
 * From a map of numbers to Plotly's traces and layout: pure, apart from the hatching's picture.
 *
 * Rows and columns are numeric axes with their own tick texts, because equal texts on a category axis are one place.
 *
 * @typedef {import("../core/pool.js").Window} Window
 * @typedef {import("../core/pool.js").Pooled} Pooled
 * @typedef {import("../core/theme.js").Palette} Palette
 *
 * @typedef {Object} MapSpec
 * @property {ArrayLike<number>} values [rows, cols], what is coloured
 * @property {Uint8Array | null} mask 1 where a cell can be seen
 * @property {number} rows @property {number} cols
 * @property {string[]} rowLabels @property {string[]} colLabels
 * @property {string} rowTitle @property {string} colTitle
 * @property {boolean} upward rows grow upward
 * @property {boolean} rowsAreTokens whether row ticks carry the position beside the label
 * @property {"query" | "ink"} rowAccent of the chosen row @property {"query" | "key"} colAccent
 * @property {"sequential" | "diverging"} colours
 * @property {[number, number]} range
 * @property {{at: number, label: string}[]} ticks of the colour bar
 * @property {string} unit title of the colour bar
 * @property {Strip | null} strip bars under the columns
 * @property {(row: number, col: number) => string[]} describe lines for the tooltip
 * @property {(width: number) => number} height of the map in pixels, for its width
 * @property {string} label name for assistive technology
 *
 * @typedef {Object} Strip
 * @property {ArrayLike<number>} values one for each column
 * @property {string} title
 * @property {(col: number) => string[]} describe
 *
 * @typedef {Object} Marks
 * @property {number | null} row @property {number | null} col
 */
import { plotlyScale } from "../core/colour.js";
import { escapeLabel, tickLabel, tickPositions } from "./labels.js";

const TICK_PX = 13;
const FONT_PX = 10.5;
const CHARACTER_PX = 6.4;
const STRIP_PX = 56;
const STRIP_GAP_PX = 10;
const BAR_PX = 74;
// On a telephone the sentence over the map says what rows, columns and colours are; the map gets the room.
const NARROW_PX = 480;
const NARROW_BAR_PX = 50;
const TITLE_PX = 20;
const HATCH_PX = 7;

/**
 * Where everything lies, in pixels.
 * @param {MapSpec} spec
 * @param {number} width
 */
export function geometry(spec, width) {
  const narrow = width < NARROW_PX;
  const longest = narrow ? 7 : 12;
  /** @param {string[]} labels */
  const room = (labels) => {
    const characters = labels.reduce((most, label) => Math.max(most, Math.min(label.length, longest)), 1);
    return Math.ceil((characters + 1 + String(labels.length - 1).length) * CHARACTER_PX) + 6;
  };
  const margin = { l: room(spec.rowLabels) + (narrow ? 0 : TITLE_PX), r: narrow ? NARROW_BAR_PX : BAR_PX, t: 9, b: room(spec.colLabels) + TITLE_PX };
  const plotWidth = Math.max(60, width - margin.l - margin.r);
  const mapHeight = Math.round(spec.height(plotWidth));
  const strip = spec.strip ? STRIP_PX + STRIP_GAP_PX : 0;
  return { narrow, longest, margin, plotWidth, mapHeight, plotHeight: mapHeight + strip, width, height: mapHeight + strip + margin.t + margin.b };
}

/**
 * @param {MapSpec} spec
 * @param {Pooled} pooled
 * @param {Window} window
 * @param {Marks} marks
 * @param {Palette} colours
 * @param {number} width
 * @param {boolean} canDrag
 */
export function figure(spec, pooled, window, marks, colours, width, canDrag) {
  const place = geometry(spec, width);
  const mapShare = place.mapHeight / place.plotHeight;
  const traces = [
    {
      type: "heatmap",
      z: pooled.rows,
      x0: pooled.left + (pooled.across - 1) / 2, dx: pooled.across,
      y0: pooled.top + (pooled.down - 1) / 2, dy: pooled.down,
      zmin: spec.range[0], zmax: spec.range[1], zauto: false,
      colorscale: plotlyScale(spec.colours === "diverging" ? colours.diverging : colours.sequential),
      hoverinfo: "none", hoverongaps: true,
      colorbar: {
        thickness: 9, outlinewidth: 0, len: mapShare, lenmode: "fraction", y: 1, yanchor: "top", x: 1, xpad: 8, ypad: 0,
        tickmode: "array", tickvals: spec.ticks.map(({ at }) => at), ticktext: spec.ticks.map(({ label }) => escapeLabel(label)),
        tickfont: { size: FONT_PX, color: colours.muted, family: colours.mono }, ticklen: 3, tickcolor: colours.line,
        title: { text: place.narrow ? "" : escapeLabel(spec.unit), side: "right", font: { size: FONT_PX + 0.5, color: colours.muted, family: colours.sans } },
        ticklabeloverflow: "allow",
      },
    },
    ...(spec.strip ? [stripTrace(spec.strip, marks, colours)] : []),
  ];
  const layout = {
    width: place.width, height: place.height, margin: place.margin,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colours.sans, size: FONT_PX + 0.5, color: colours.ink },
    showlegend: false, hovermode: "closest", dragmode: canDrag ? "zoom" : false, bargap: 0.15,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.muted, activecolor: colours.ink },
    xaxis: {
      ...axis(colours, spec.colTitle, [window.left - 0.5, window.right - 0.5], [-0.5, spec.cols - 0.5]),
      ...ticks(spec.colLabels, window.left, window.right, place.plotWidth, marks.col, place.longest, colours[spec.colAccent], true),
      anchor: spec.strip ? "y2" : "y", tickangle: -90, side: "bottom",
    },
    yaxis: {
      ...axis(colours, place.narrow ? "" : spec.rowTitle, spec.upward ? [window.top - 0.5, window.bottom - 0.5] : [window.bottom - 0.5, window.top - 0.5], [-0.5, spec.rows - 0.5]),
      ...ticks(spec.rowLabels, window.top, window.bottom, place.mapHeight, marks.row, place.longest, colours[spec.rowAccent], spec.rowsAreTokens),
      domain: [1 - mapShare, 1],
    },
    ...(spec.strip ? { yaxis2: stripAxis(spec.strip, place.plotHeight, colours) } : {}),
    shapes: markShapes(marks, spec, colours),
    images: spec.mask ? [hatching(place.plotWidth, place.mapHeight, mapShare, colours)] : [],
  };
  return { traces, layout };
}

/**
 * @param {Palette} colours
 * @param {string} title
 * @param {[number, number]} range
 * @param {[number, number]} allowed
 */
function axis(colours, title, range, allowed) {
  return {
    range, minallowed: allowed[0], maxallowed: allowed[1], autorange: false,
    showgrid: false, zeroline: false, showline: false, ticks: "",
    tickfont: { size: FONT_PX, family: colours.mono, color: colours.muted },
    title: { text: escapeLabel(title), font: { size: FONT_PX + 1, color: colours.muted }, standoff: 4 },
  };
}

/**
 * @param {string[]} labels
 * @param {number} start
 * @param {number} end
 * @param {number} pixels
 * @param {number | null} chosen
 * @param {number} longest
 * @param {string} accent
 * @param {boolean} numbered
 */
function ticks(labels, start, end, pixels, chosen, longest, accent, numbered) {
  const positions = tickPositions(start, end, Math.floor(pixels / TICK_PX), chosen);
  const texts = positions.map((at) => {
    const text = numbered ? tickLabel(at, labels[at], longest) : escapeLabel(labels[at]);
    return at === chosen ? `<b><span style="color:${accent}">${text}</span></b>` : text;
  });
  return { tickmode: "array", tickvals: positions, ticktext: texts };
}

/**
 * @param {Strip} strip
 * @param {Marks} marks
 * @param {Palette} colours
 */
function stripTrace(strip, marks, colours) {
  return {
    type: "bar", x0: 0, dx: 1, y: strip.values, yaxis: "y2", hoverinfo: "none",
    marker: { color: Array.from(strip.values, (_, col) => (col === marks.col ? colours.key : colours.bar)), line: { width: 0 } },
  };
}

/**
 * @param {Strip} strip
 * @param {number} plotHeight
 * @param {Palette} colours
 */
function stripAxis(strip, plotHeight, colours) {
  const most = Array.from(strip.values).reduce((a, b) => (b > a ? b : a), 0);
  return {
    domain: [0, STRIP_PX / plotHeight], range: [0, most * 1.05 || 1], fixedrange: true, nticks: 3,
    showgrid: true, gridcolor: colours.line, zeroline: true, zerolinecolor: colours.line, ticks: "",
    tickfont: { size: FONT_PX, family: colours.mono, color: colours.muted },
    title: { text: escapeLabel(strip.title), font: { size: FONT_PX + 1, color: colours.muted }, standoff: 4 },
  };
}

/**
 * Outlines of the chosen row and column; the key's is dotted, so that colour is not needed to tell them apart.
 * @param {Marks} marks
 * @param {MapSpec} spec
 * @param {Palette} colours
 */
export function markShapes({ row, col }, spec, colours) {
  const band = { type: "rect", fillcolor: "rgba(0,0,0,0)", layer: "above", xref: "x", yref: "y" };
  const shapes = [];
  if (col !== null) {
    shapes.push({ ...band, x0: col - 0.5, x1: col + 0.5, y0: -0.5, y1: spec.rows - 0.5, line: { color: colours[spec.colAccent], width: 1.5, dash: spec.colAccent === "key" ? "dot" : "solid" } });
  }
  if (row !== null) {
    shapes.push({ ...band, x0: -0.5, x1: spec.cols - 0.5, y0: row - 0.5, y1: row + 0.5, line: { color: colours[spec.rowAccent], width: 1.5 } });
  }
  return shapes;
}

/** @type {{name: string, source: string}} the last picture of the hatching */
let lastHatching = { name: "", source: "" };

/**
 * What shows through where nothing can be seen: hatching, which no amount looks like.
 * @param {number} width
 * @param {number} height
 * @param {number} mapShare
 * @param {Palette} colours
 */
function hatching(width, height, mapShare, colours) {
  const name = [width, height, colours.unseen, colours.unseenLine].join(" ");
  if (name !== lastHatching.name) lastHatching = { name, source: hatchingPicture(width, height, colours) };
  return {
    source: lastHatching.source, xref: "paper", yref: "paper", x: 0, y: 1, sizex: 1, sizey: mapShare,
    sizing: "stretch", layer: "below",
  };
}

/**
 * @param {number} width
 * @param {number} height
 * @param {Palette} colours
 */
function hatchingPicture(width, height, colours) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = colours.unseen;
  context.fillRect(0, 0, width, height);
  context.strokeStyle = colours.unseenLine;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = -height; at < width; at += HATCH_PX) {
    context.moveTo(at, height);
    context.lineTo(at + height, 0);
  }
  context.stroke();
  return canvas.toDataURL();
}
