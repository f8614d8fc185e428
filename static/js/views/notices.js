/** Short messages over the panels, each of which can be put away. */
import { el } from "../core/dom.js";

/**
 * @param {HTMLElement} root
 * @returns {{add: (text: string) => void, destroy: () => void}}
 */
export function createNotices(root) {
  return {
    add(text) {
      const notice = el("p", { class: "message notice" }, el("span", {}, text));
      notice.append(el("button", { class: "icon-button", type: "button", "aria-label": "Put away", onclick: () => notice.remove() }, "✕"));
      root.append(notice);
    },
    destroy: () => root.replaceChildren(),
  };
}
