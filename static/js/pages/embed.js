/** One head of an analysis, for a frame in another page. */
import { byId } from "../core/dom.js";
import { shareUrl } from "../core/history.js";
import { createHead } from "../views/head.js";
import { createTokens } from "../views/tokens.js";
import { runWorkbench } from "./workbench.js";

runWorkbench([createTokens, createHead], (store) => {
  const full = byId("full", HTMLAnchorElement);
  store.subscribe(() => {
    full.href = shareUrl(store).replace(/\/embed\?/, "?");
  });
});
