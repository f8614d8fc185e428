/**
 * The ledger: what the program claims adds up, how far off it is, and how far off it may be.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/types.js").LedgerRow} LedgerRow
 */
import { el } from "../core/dom.js";
import { number, scientific } from "../core/format.js";
import { createPanel } from "../core/panel.js";

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createLedger(root, store) {
  const { rows, holds, cost } = store.analysis.ledger ?? { rows: [], holds: false, cost: {} };
  const panel = createPanel(root, {
    name: "ledger",
    title: "Ledger",
    about: "Each claim that parts add up, with its worst error relative to the largest value involved, and what rounding may explain.",
  });
  const broken = rows.filter((row) => !row.holds).length;
  const words = holds ? `✓ all ${rows.length} hold` : rows.length ? `✗ ${broken} of ${rows.length} do not hold` : "✗ nothing was checked";
  panel.chosen(el("span", { class: holds ? "verdict" : "verdict is-broken" }, words));
  const head = ["Claim", "Worst at", "Worst error", "Tolerated", "Verdict"];
  panel.body.append(
    el(
      "div",
      { class: "table-scroll" },
      el(
        "table",
        { class: "ledger" },
        el("thead", {}, el("tr", {}, ...head.map((name, i) => el("th", { scope: "col", class: i === 2 || i === 3 ? "numeric" : "" }, name)))),
        el("tbody", {}, ...rows.map(ledgerRow)),
      ),
    ),
  );
  const spent = Object.entries(cost);
  if (spent.length) panel.note(`Seconds spent: ${spent.map(([stage, seconds]) => `${stage} ${number(seconds, 2)}`).join(" · ")}`);
  return { destroy: () => panel.section.remove() };
}

/** @param {LedgerRow} row */
function ledgerRow(row) {
  const where = [row.where, row.note].filter(Boolean).join("; ");
  return el(
    "tr",
    { class: row.holds ? "holds" : "broken" },
    el("td", { class: "claim" }, row.claim),
    el("td", { class: "where" }, where),
    el("td", { class: "numeric", "data-label": "worst", title: `absolute: ${scientific(row.worst_abs)}` }, scientific(row.worst_rel)),
    el("td", { class: "numeric", "data-label": "tolerated" }, scientific(row.tolerance)),
    el("td", { class: "verdict" }, row.holds ? "✓ holds" : "✗ over"),
  );
}
