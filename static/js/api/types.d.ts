/** The JSON of the HTTP interface, as docs/architecture.md states it. */

/** A number; one that JSON does not have is spelt out: "NaN", "Infinity", "-Infinity". */
export type Figure = number | string;

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  facts?: Record<string, unknown>;
  instance?: string;
  errors?: { pointer: string; detail: string }[];
}

export interface Anatomy {
  family: string;
  n_layers: number;
  n_heads: number;
  n_kv_heads: number;
  d_model: number;
  d_head: number;
  vocab_size: number;
  logit_cap?: number | null;
  [other: string]: unknown;
}

export interface Limits {
  max_tokens: number;
  max_body_bytes: number;
}

export interface LedgerRow {
  name: string;
  claim: string;
  worst_abs: Figure;
  worst_rel: Figure;
  tolerance: number;
  where: string;
  note: string;
  holds: boolean;
}

export interface Model {
  id: string;
  kind: "transformer" | "lstm";
  title: string;
  source: string;
  state: "ready" | "not_loaded" | "loading" | "missing" | "failed";
  message: string;
  dtype: string | null;
  device: string | null;
  fingerprint: string | null;
  anatomy: Anatomy | null;
  limits: Limits;
  self_check?: LedgerRow[];
}

export interface Token {
  index: number;
  id: number;
  text: string;
  label: string;
  bytes: string;
  start: number;
  end: number;
  is_special: boolean;
  continues: boolean;
  added: boolean;
}

export interface Prediction {
  id: number;
  label: string;
  probability: Figure;
  logit: Figure;
}

export interface TensorInfo {
  name: string;
  axes: string[];
  shape: (number | null)[];
  unit: string;
  about: string;
  needs: string[];
  url: string;
  stored: boolean;
}

export interface Analysis {
  id: string;
  state: "queued" | "running" | "done" | "failed";
  stage: string;
  fraction: number;
  queue_position: number;
  problem: Problem | null;
  created_at: string;
  model: Model;
  text: string;
  tokens: Token[];
  /** Bits of every token given what precedes it; null for the first. */
  surprisal: (Figure | null)[];
  /** Bits of the distribution after every token. */
  entropy: Figure[];
  next: Prediction[];
  /** The best next tokens after every token. */
  predictions: Prediction[][];
  ledger: { holds: boolean; rows: LedgerRow[]; cost: Record<string, number> } | null;
  notes: string[];
  thumbnail_stride: number | null;
  tensors: TensorInfo[];
  owner_token?: string;
}

export interface Tokenization {
  model: string;
  n_tokens: number;
  limit: number;
  over_limit: boolean;
  tokens: Token[];
}

export interface TypedArrayJson {
  dtype: string;
  shape: string;
  bdata: string;
}

export interface Envelope {
  name: string;
  axes: string[];
  unit: string;
  about: string;
  fixed: Record<string, number>;
  data: TypedArrayJson;
  mask?: TypedArrayJson;
}

export interface Progress {
  stage: string;
  fraction: number;
  queue_position: number;
}

export type Numbers = Float32Array | Float64Array | Uint8Array | Uint16Array | Uint32Array | Int16Array | Int32Array;

/** A tensor after decoding. `mask` is 1 where a cell can be seen and 0 where it cannot. */
export interface Tensor {
  name: string;
  axes: string[];
  shape: number[];
  unit: string;
  about: string;
  values: Numbers;
  mask: Uint8Array | null;
}
