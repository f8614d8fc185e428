/**
 * The message side of the chosen head: for every source what it would send, and what of it arrives at the reader.
 * @typedef {import("../core/store.js").Store} Store
 * @typedef {import("../api/lenses.js").MessageReading} MessageReading
 */
import { analysisUrl } from "../api/client.js";
import { asFailure } from "../api/errors.js";
import { closing } from "../core/closing.js";
import { el, replace, tokenText } from "../core/dom.js";
import { number, percent, signed, valueOf } from "../core/format.js";
import { createLatest } from "../core/latest.js";
import { createPanel } from "../core/panel.js";
import { withOrigin } from "../core/python.js";
import { touches } from "../core/store.js";
import { dataTable, effectList, figure } from "../core/table.js";
import { createGate } from "../core/visible.js";

const LISTED = 14;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createSends(root, store) {
  const { id } = store.analysis;
  const panel = createPanel(root, {
    name: "sends",
    title: "What the head sends",
    about: "Each source’s message, read as logits: the tokens it would promote and suppress most if it got all of the reader’s attention, and what of it arrives.",
  });
  panel.python(() => reading && withOrigin(reading.python, location.origin));
  const place = el("div");
  const shared = el("p", { class: "small muted" });
  const foot = el("p", { class: "closes" });
  panel.body.append(place, shared, foot);
  const gate = createGate(panel.section);
  const latest = createLatest((error) => panel.fail(asFailure(error), load));
  /** @type {MessageReading | null} */
  let reading = null;

  function load() {
    const { layer, head, query, target, foil } = store.view();
    panel.wait("Reading the messages…");
    latest.run(async (signal) => {
      reading = /** @type {MessageReading} */ (await store.answers.get(analysisUrl(id, "message-reading", { layer, head, query, target, foil }), signal));
      store.words.learn([reading.aim.target, reading.aim.foil]);
      panel.wait(null);
      show();
    });
  }

  function show() {
    if (!reading) return;
    const { sources, aim, shares_with: others, kv_head: kv } = reading;
    const { key: chosen } = store.view();
    const seen = sources.map((one, i) => ({ ...one, i })).filter((one) => one.seen);
    const strongest = [...seen].sort((a, b) => valueOf(b.delivered_norm) - valueOf(a.delivered_norm)).slice(0, LISTED);
    const on = el("span", {}, "effect on ", aim.target && tokenText(aim.target.label), aim.foil && " − ", aim.foil && tokenText(aim.foil.label));
    replace(
      place,
      dataTable({
        label: "Sources, by what they deliver",
        columns: [
          { head: "source", kind: "token" },
          { head: "‖m‖", kind: "number", title: "norm of the message" },
          { head: "A", kind: "number", title: "pattern" },
          { head: "A‖m‖", kind: "number", title: "norm of what is delivered" },
          { head: "share", kind: "number", title: "of the head’s output, measured along it; shares add up to 100 %" },
          { head: on, kind: "number", title: "of what is delivered, in logits" },
          { head: "promotes", kind: "words" },
          { head: "suppresses", kind: "words" },
        ],
        rows: strongest.map((one) => ({
          className: one.key === chosen ? "is-chosen" : "",
          onChoose: () => store.set({ key: one.key }),
          cells: [
            el("span", {}, tokenText(one.label), el("span", { class: "muted" }, ` ${one.key}`)),
            figure(number(one.norm), `sources.${one.i}.norm`),
            figure(number(one.pattern), `sources.${one.i}.pattern`),
            figure(number(one.delivered_norm), `sources.${one.i}.delivered_norm`),
            figure(percent(one.share), `sources.${one.i}.share`),
            figure(signed(one.effect), `sources.${one.i}.effect`),
            effectList(one.promotes, signed, `sources.${one.i}.promotes`),
            effectList(one.suppresses, signed, `sources.${one.i}.suppresses`),
          ],
        })),
      }),
      seen.length > LISTED && el("p", { class: "small muted" }, `The ${LISTED} that deliver most, of ${seen.length} that the reader can see.`),
    );
    shared.textContent = others.length
      ? `Keys and values come from key/value head ${kv}, which this head shares with ${others.length === 1 ? "head" : "heads"} ${others.join(" and ")}: they see the same values and differ by their slice of W_O.`
      : "This head has keys and values of its own.";
    replace(foot, closing(reading.closes));
  }

  const end = store.subscribe((change) => {
    if (touches(change, "layer", "head", "query")) panel.chosen(`layer ${change.view.layer} head ${change.view.head} reader ${change.view.query}`);
    if (touches(change, "layer", "head", "query", "target", "foil")) gate.run(load);
    else if (touches(change, "key")) show();
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
