/**
 * Ties the store to the address: deliberate choices become steps of the Back button, quick moves replace the address a
 * moment later, and going back or forward restores the view.
 */
import { formatView, parseView } from "./view-state.js";

// Browsers refuse more than about a hundred replacements in ten seconds; held arrow keys make thirty a second.
const SETTLE_MS = 150;

/**
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./store.js").Change} Change
 * @param {Store & {onMove: (hear: (change: Change) => void) => void}} store
 * @param {(notices: string[]) => void} [notify]
 */
export function bindHistory(store, notify = () => {}) {
  let timer = 0;
  const address = () => `${location.pathname}?${formatView(store.view())}${location.hash}`;
  const replace = () => history.replaceState(null, "", address());

  replace();
  store.onMove(({ deliberate }) => {
    clearTimeout(timer);
    if (deliberate) history.pushState(null, "", address());
    else timer = window.setTimeout(replace, SETTLE_MS);
  });
  window.addEventListener("popstate", () => {
    clearTimeout(timer);
    const { view, notices } = parseView(location.search, store.dimensions);
    store.restore(view);
    if (notices.length) notify(notices);
  });
}

/**
 * The complete address of what is on the screen.
 * @param {Store} store
 */
export function shareUrl(store) {
  return `${location.origin}${location.pathname}?${formatView(store.view())}`;
}
