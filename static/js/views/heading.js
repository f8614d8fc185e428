/**
 * The line over the workbench: prompt, model, and the link to exactly this view.
 * @typedef {import("../core/store.js").Store} Store
 */
import { el, replace } from "../core/dom.js";
import { shareUrl } from "../core/history.js";
import { shortened } from "../core/format.js";

const SHOWN_CHARACTERS = 160;
const CONFIRMED_MS = 2500;

/**
 * @param {HTMLElement} root
 * @param {Store} store
 */
export function createHeading(root, store) {
  const { text, model, tokens, ledger } = store.analysis;
  const prompt = text || tokens.map((token) => token.text).join("");
  const said = el("span", { class: "small muted", role: "status" });
  const field = el("input", { class: "share-field", type: "text", readOnly: true, hidden: true, "aria-label": "Link to this view" });
  const share = el("button", { class: "button", type: "button" }, "Share");
  let timer = 0;

  share.addEventListener("click", async () => {
    const link = shareUrl(store);
    clearTimeout(timer);
    try {
      await navigator.clipboard.writeText(link);
      said.textContent = "Link copied";
      timer = window.setTimeout(() => (said.textContent = ""), CONFIRMED_MS);
    } catch {
      // Without a secure connection a page may not write to the clipboard; the link is shown to be copied by hand.
      field.value = link;
      field.hidden = false;
      field.select();
      said.textContent = "Copy this link";
    }
  });

  replace(
    root,
    el("bdi", { class: "heading-prompt", title: shortened(prompt, 1000) }, shortened(prompt.replace(/\s+/g, " "), SHOWN_CHARACTERS)),
    el("a", { class: "heading-model", href: "/status", title: [model.source, model.dtype && `computed in ${model.dtype} on ${model.device}`].filter(Boolean).join(", ") }, model.title),
    el(
      "a",
      { class: ledger?.holds ? "heading-ledger" : "heading-ledger is-broken", href: "#panel-ledger" },
      ledger?.holds ? "✓ adds up" : "✗ does not add up",
    ),
    said,
    field,
    share,
  );
  return {
    destroy() {
      clearTimeout(timer);
      root.replaceChildren();
    },
  };
}
