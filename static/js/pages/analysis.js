/** The workbench, /a/{id}. Panels in reading order; wide screens place them by the style sheet. */
import { byId } from "../core/dom.js";
import { bindThemeButton } from "../core/theme.js";
import { shortened } from "../core/format.js";
import { createEdge } from "../views/edge.js";
import { createHead } from "../views/head.js";
import { createHeading } from "../views/heading.js";
import { createHeads } from "../views/heads.js";
import { createLedger } from "../views/ledger.js";
import { createPrediction } from "../views/prediction.js";
import { createStream } from "../views/stream.js";
import { createTokens } from "../views/tokens.js";
import { runWorkbench } from "./workbench.js";

// In reading order: one column on narrow screens.
const VIEWS = [
  createTokens, createPrediction, createHeads, createHead, createEdge, createStream, createLedger,
];

bindThemeButton(byId("theme", HTMLButtonElement));
runWorkbench(VIEWS, (store) => {
  createHeading(byId("heading", HTMLElement), store);
  document.title = `${shortened(store.analysis.text.trim().replace(/\s+/g, " "), 60) || "An analysis"} · Headwater`;
});
