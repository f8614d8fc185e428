/**
 * Whether the sums that an answer rests on hold, in one line; the claims themselves on hover.
 * @typedef {import("../api/types.js").LedgerRow} LedgerRow
 */
import { el } from "./dom.js";
import { scientific, valueOf } from "./format.js";

/** @param {LedgerRow[]} rows */
export function closing(rows) {
  const broken = rows.filter(({ holds }) => !holds);
  const worst = rows.reduce((most, row) => Math.max(most, valueOf(row.worst_rel)), 0);
  const title = rows.map(({ claim, worst_rel, holds }) => `${holds ? "✓" : "✗"} ${claim} (${scientific(worst_rel)})`).join("\n");
  if (broken.length) return el("span", { class: "verdict is-broken", title }, `✗ does not add up: ${broken.map(({ claim }) => claim).join(" ")}`);
  return el("span", { class: "verdict", title }, `✓ adds up, to ${scientific(worst)} of the largest`);
}
