/** The JSON of the lenses, as docs/architecture.md states it. */
import type { Figure, LedgerRow, Prediction, Token, TypedArrayJson } from "./types.js";

export interface Word {
  id: number;
  label: string;
}

/** One token of a list, with its number. */
export interface Effect extends Word {
  value: Figure;
}

export interface Aim {
  target: Word | null;
  foil: Word | null;
  chosen: "given" | "top";
}

/** What every answer carries: the sums it rests on, and the lines that fetch it again. */
export interface Answer {
  closes: LedgerRow[];
  python: string;
}

export interface Targets {
  pos: number;
  actual: Word | null;
  top: Prediction[];
  typed: { text: string; tokens: Token[]; target: Word | null; note: string } | null;
}

export interface EquationStep {
  step: "score" | "pattern" | "message" | "delivered" | "output" | "stream" | "logit";
  left: string;
  formula: string;
  numbers: string;
  value: Figure | null;
  unit: string;
  about: string;
}

export interface Competitor {
  key: number;
  label: string;
  score: Figure | null;
  pattern: Figure;
}

export interface Edge extends Answer {
  layer: number;
  head: number;
  kv_head: number;
  query: number;
  key: number;
  seen: boolean;
  aim: Aim;
  score: Record<"dot" | "q_norm" | "k_norm" | "cosine" | "scaling" | "scaled" | "cap" | "capped" | "position_bias" | "score", Figure | null>;
  softmax: {
    pattern: Figure;
    row_sum: Figure;
    n_seen: number;
    log_total: Figure;
    rank: number | null;
    sink: { score: Figure; pattern: Figure } | null;
    competitors: Competitor[];
  };
  message: Record<"x_hat_query_norm" | "x_hat_key_norm" | "value_norm" | "norm" | "reader_scale" | "delivered_norm", Figure>;
  output: Record<"norm" | "projection" | "share" | "cosine", Figure>;
  stream: Record<"before_norm" | "write_norm" | "along", Figure>;
  promotes: Effect[];
  suppresses: Effect[];
  mean_effect: Figure;
  effect: Record<"source" | "head" | "logit", Figure>;
  equation: EquationStep[];
}

export interface PresentToken {
  key: number;
  label: string;
  score: Figure | null;
  as_embedding: Figure | null;
  seen: boolean;
  pattern: Figure;
}

export interface PatternReading extends Answer {
  layer: number;
  head: number;
  query: number;
  key: number | null;
  vector_norm: Figure;
  bias: Figure;
  scaling: Figure;
  notes: string[];
  seeks: Effect[];
  avoids: Effect[];
  mean: Figure;
  std: Figure;
  present: PresentToken[];
}

export interface Component {
  name: string;
  kind: string;
  layer: number | null;
  head?: number | null;
}

export interface ScoreSources extends Answer {
  layer: number;
  head: number;
  query: number;
  key: number;
  scaled: Figure;
  components: Component[];
  query_side: TypedArrayJson;
  key_side: TypedArrayJson;
  query_bias: Figure;
  key_bias: Figure;
  query_rest: Figure;
  key_rest: Figure;
  groups: Component[];
  pairs: TypedArrayJson;
  strongest: { query: number; key: number; value: Figure }[];
  notes: string[];
}

export interface MessageSource {
  key: number;
  label: string;
  norm: Figure;
  seen: boolean;
  pattern: Figure;
  delivered_norm: Figure;
  share: Figure;
  effect: Figure;
  promotes: Effect[];
  suppresses: Effect[];
}

export interface MessageReading extends Answer {
  layer: number;
  head: number;
  kv_head: number;
  shares_with: number[];
  query: number;
  aim: Aim;
  sources: MessageSource[];
}

export interface AttributionRow extends Component {
  value: Figure;
}

export interface AttributionAnswer extends Answer {
  pos: number;
  aim: Aim;
  rows: AttributionRow[];
  by_layer: AttributionRow[];
  by_kind: AttributionRow[];
  steps: { name: "sum" | "scale" | "cap"; value: Figure; factor: Figure | null; about: string }[];
  logit: Figure;
  probability: Figure | null;
  sum: Figure;
}

export interface SourcesAnswer extends Answer {
  pos: number;
  aim: Aim;
  layer: number;
  head: number;
  values: TypedArrayJson;
  seen: TypedArrayJson;
  value: Figure;
}

export interface LensPoint {
  point: number;
  stream: number;
  where: "before" | "between" | "final";
  layer: number;
  label: string;
}

export interface LensAnswer extends Answer {
  points: LensPoint[];
  rows: { point: number; pos: number }[];
  k: number;
  aim: Aim;
  top_ids: TypedArrayJson;
  top_probability: TypedArrayJson;
  top_logit: TypedArrayJson;
  labels: Record<string, string>;
  entropy: TypedArrayJson;
  target_probability: TypedArrayJson;
  target_logit: TypedArrayJson;
  target_rank: TypedArrayJson;
  foil_logit: TypedArrayJson | null;
  target_ids?: TypedArrayJson;
  kl: TypedArrayJson;
  fraction?: number;
}

export interface Summary {
  name: string;
  unit: string;
  about: string;
  values: TypedArrayJson;
}

export interface Badge {
  layer: number;
  head: number;
  badge: string;
  summary: string;
  score: Figure;
  percentile: Figure;
  evidence: string;
}

export interface HeadsAnswer {
  pos: number;
  aim: Aim;
  summaries: Summary[];
  probe: { n_tokens: number; period: number; seed: number; about: string; summaries: Summary[]; badges: Badge[] };
  python: string;
}

export interface Direction {
  index: number;
  value: Figure;
  query?: Ends;
  key?: Ends;
  source?: Ends;
  output?: Ends;
}

export interface Ends {
  positive: Effect[];
  negative: Effect[];
}

export interface Matrices extends Answer {
  layer: number;
  head: number;
  kv_head: number;
  notes: string[];
  pattern_matrix: { singular_values: TypedArrayJson; directions: Direction[] };
  message_matrix: { singular_values: TypedArrayJson; directions: Direction[] };
}

export interface Composition extends Answer {
  kind: "q" | "k" | "v";
  heads: { layer: number; head: number }[];
  scores: TypedArrayJson;
  baseline: Figure;
  about: string;
}
