/**
 * The pattern side of the chosen head: what the reader looks for, among all words and among the tokens present, and
 * where a score comes from.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/lenses.js").PatternReading} PatternReading
 * @typedef {import("../api/lenses.js").ScoreSources} ScoreSources
 */
import { decodeArray } from "../api/arrays.js";
import { analysisUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { closing } from "../core/closing.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number, signed, valueOf } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { withOrigin } from "../core/python.js";
import { touches } from "../core/store.js";
import { amountBar, dataTable, effectList, figure, signedBar } from "../core/table.js";
import { createGate } from "../core/visible.js";

// The strongest tokens present; the map shows all of them.
const LISTED = 12;
const SOURCES_LISTED = 8;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createSeeks(root, store) {
  const { id } = store.analysis;
  const panel = createPanel(root, {
    name: "seeks",
    title: "What the head looks for",
    about: "The reader’s pattern vector x̂ W_Q W_Kᵀ, read against the vocabulary: the score before the softmax that a token’s bare embedding would get as a source.",
  });
  panel.python(() => reading && withOrigin(reading.python, location.origin));
  const words = el("div", { class: "reading" });
  const present = el("div");
  const origins = el("div", { class: "reading" });
  const foot = el("p", { class: "closes" });
  panel.body.append(words, present, origins, foot);
  const gate = createGate(panel.section);
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {PatternReading | null} */
  let reading = null;

  function load() {
    const { layer, head, query, key } = store.view();
    panel.wait("Reading the pattern vector…");
    latest.run(async (signal) => {
      const at = { layer, head, query, key };
      const [found, sources] = await Promise.all([
        store.answers.get(analysisUrl(id, "pattern-reading", at), signal),
        key <= query ? store.answers.get(analysisUrl(id, "score-sources", at), signal) : null,
      ]);
      reading = /** @type {PatternReading} */ (found);
      panel.wait(null);
      showWords(reading);
      showPresent(reading);
      showOrigins(sources);
      replace(foot, closing([...reading.closes, ...(sources?.closes ?? [])]));
      panel.note(reading.notes.join(" "));
    });
  }

  /** @param {PatternReading} found */
  function showWords({ seeks, avoids, mean, std }) {
    replace(
      words,
      el("p", {}, "Seeks ", effectList(seeks, signed, "seeks")),
      el("p", {}, "Avoids ", effectList(avoids, signed, "avoids")),
      el("p", { class: "small muted" }, `Scores; over the whole vocabulary they are ${signed(mean)} ± ${number(std)} (mean and standard deviation).`),
    );
  }

  /** @param {PatternReading} found */
  function showPresent({ present: all, key: chosen }) {
    const seen = all.map((one, i) => ({ ...one, i })).filter((one) => one.seen);
    const strongest = seen.sort((a, b) => valueOf(b.score ?? -Infinity) - valueOf(a.score ?? -Infinity)).slice(0, LISTED);
    const most = strongest.reduce((top, one) => Math.max(top, valueOf(one.pattern)), 0);
    replace(
      present,
      dataTable({
        label: "The tokens present, by score",
        columns: [
          { head: "token present", kind: "token" },
          { head: "score", kind: "number", title: "before the softmax" },
          { head: "as word", kind: "number", title: "the score its bare embedding would get: how much of the score is the word itself" },
          { head: "pattern", kind: "number" },
          { head: "", kind: "bar" },
        ],
        rows: strongest.map((one) => ({
          className: one.key === chosen ? "is-chosen" : "",
          onChoose: () => store.set({ key: one.key }),
          cells: [
            el("span", {}, tokenText(one.label), el("span", { class: "muted" }, ` ${one.key}`)),
            figure(signed(one.score), `present.${one.i}.score`),
            figure(signed(one.as_embedding), `present.${one.i}.as_embedding`),
            figure(number(one.pattern), `present.${one.i}.pattern`),
            amountBar(valueOf(one.pattern), most),
          ],
        })),
      }),
      seen.length > LISTED && el("p", { class: "small muted" }, `The ${LISTED} highest of ${seen.length} that the reader can see.`),
    );
  }

  /** @param {ScoreSources | null} found */
  function showOrigins(found) {
    if (!found) {
      replace(origins, el("p", { class: "small muted" }, "The chosen source lies after the reader: there is no score to split."));
      return;
    }
    replace(
      origins,
      el("p", {}, "Where the score of the chosen cell comes from: ", el("strong", {}, signed(found.scaled)), " split by who wrote what is read."),
      el("div", { class: "two-columns" }, side("Reader’s side, q", found, "query"), side("Source’s side, k", found, "key")),
    );
  }

  const end = store.subscribe((change) => {
    if (!touches(change, "layer", "head", "query", "key")) return;
    panel.chosen(`layer ${change.view.layer} head ${change.view.head} reader ${change.view.query}`);
    gate.run(load);
  });

  return {
    destroy() {
      end();
      gate.destroy();
      latest.cancel();
      panel.section.remove();
    },
  };
}

/**
 * The strongest components of one side of a score; they, the bias and the rest add up to the score.
 * @param {string} title
 * @param {ScoreSources} found
 * @param {"query" | "key"} which
 */
function side(title, found, which) {
  const { values } = decodeArray(found[`${which}_side`]);
  const extra = [
    { name: "bias", value: valueOf(found[`${which}_bias`]) },
    { name: "rest", value: valueOf(found[`${which}_rest`]) },
  ].filter(({ value }) => value !== 0);
  const order = Array.from(values, (_, i) => i).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const [named, others] = [order.slice(0, SOURCES_LISTED), order.slice(SOURCES_LISTED)];
  const rows = [
    ...named.map((i) => ({ name: found.components[i].name, value: values[i] })),
    ...(others.length ? [{ name: `${others.length} others`, value: others.reduce((sum, i) => sum + values[i], 0) }] : []),
    ...extra,
  ];
  const most = rows.reduce((top, { value }) => Math.max(top, Math.abs(value)), 0);
  return dataTable({
    label: title,
    columns: [{ head: title, kind: "words" }, { head: "score", kind: "number" }, { head: "", kind: "bar" }],
    rows: rows.map(({ name, value }) => ({ cells: [name, signed(value), signedBar(value, most)] })),
  });
}
