/**
 * Small tables of tokens and numbers. A number is a button that copies itself as Python, where its panel knows how.
 */
import { el, tokenText } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * A number that can be copied as Python: `path` says where it stands in the panel's answer.
 * @param {string} text
 * @param {string} path
 */
export function figure(text, path) {
  return el("button", { class: "figure", type: "button", "data-path": path, title: "Copy as Python" }, text);
}

/**
 * @typedef {Object} Column
 * @property {Child} head
 * @property {"token" | "number" | "words" | "bar"} kind
 * @property {string} [title]
 */

/**
 * @param {Object} options
 * @param {string} options.label name of the table
 * @param {Column[]} options.columns
 * @param {{cells: Child[], className?: string, title?: string, onChoose?: () => void}[]} options.rows
 * @returns {HTMLElement} scrolls sideways by itself where it does not fit
 */
export function dataTable({ label, columns, rows }) {
  const body = rows.map(({ cells, className = "", title, onChoose }) => {
    const row = el("tr", { class: className, title }, ...cells.map((cell, i) => el("td", { class: `is-${columns[i].kind}` }, cell)));
    if (onChoose) {
      row.classList.add("can-choose");
      row.addEventListener("click", (event) => {
        if (!(event.target instanceof Element && event.target.closest("button"))) onChoose();
      });
    }
    return row;
  });
  return el(
    "div",
    { class: "table-scroll", tabIndex: 0, role: "region", "aria-label": label },
    el(
      "table",
      { class: "data" },
      el("thead", {}, el("tr", {}, ...columns.map(({ head, kind, title }) => el("th", { scope: "col", class: `is-${kind}`, title }, head)))),
      el("tbody", {}, ...body),
    ),
  );
}

/**
 * Tokens one after the other, each with its number in small.
 * @param {import("../api/lenses.js").Effect[]} effects
 * @param {(value: import("../api/types.js").Figure) => string} write
 * @param {string} path of the list in the panel's answer
 */
export function effectList(effects, write, path) {
  return el(
    "span",
    { class: "effects" },
    ...effects.map(({ label, value }, i) => el("span", { class: "effect" }, tokenText(label), figure(write(value), `${path}.${i}.value`))),
  );
}

/**
 * A bar from zero, to the right for positive and to the left for negative numbers, within ±`most`.
 * @param {number} value
 * @param {number} most
 */
export function signedBar(value, most) {
  const bar = el("span", { class: value < 0 ? "signed-fill is-negative" : "signed-fill" });
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) * 50 : 0;
  bar.style.width = `${share}%`;
  bar.style.left = value < 0 ? `${50 - share}%` : "50%";
  return el("span", { class: "signed-track", "aria-hidden": "true" }, bar);
}

/**
 * A bar from the left for an amount.
 * @param {number} value
 * @param {number} most
 */
export function amountBar(value, most) {
  const bar = el("span", { class: "bar-fill" });
  bar.style.width = `${most > 0 ? Math.max(0, Math.min(1, value / most)) * 100 : 0}%`;
  return el("span", { class: "bar-track", "aria-hidden": "true" }, bar);
}
