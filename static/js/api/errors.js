/**
 * Every failure that a view can meet is a `Failure`: a kind, a title and a sentence to show.
 * @typedef {import("./types.js").Problem} Problem
 */

export class Failure extends Error {
  /**
   * @param {string} kind last part of the problem type, such as "prompt-too-long"
   * @param {string} title
   * @param {string} detail
   * @param {{status?: number, facts?: Record<string, unknown>}} [more]
   */
  constructor(kind, title, detail, { status = 0, facts = {} } = {}) {
    super(`${title}: ${detail}`);
    this.name = "Failure";
    this.kind = kind;
    this.title = title;
    this.detail = detail;
    this.status = status;
    this.facts = facts;
  }

  /** Whether asking again later can help without changing anything. */
  get isTemporary() {
    return ["network", "busy", "too-many-requests", "timed-out", "not-ready"].includes(this.kind);
  }
}

/**
 * The failure that a problem document describes; validation errors are joined to its detail.
 * @param {Problem} problem
 * @returns {Failure}
 */
export function failureOf(problem) {
  const parts = (problem.errors ?? []).map(({ pointer, detail }) => `${pointer}: ${detail}`);
  const detail = [problem.detail, ...parts].filter(Boolean).join(" ");
  const kind = String(problem.type ?? "").split("/").pop() || "error";
  return new Failure(kind, problem.title ?? "Something went wrong", detail, {
    status: problem.status,
    facts: problem.facts,
  });
}

/**
 * Any thrown value as a failure.
 * @param {unknown} error
 * @returns {Failure}
 */
export function asFailure(error) {
  if (error instanceof Failure) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Failure("page", "The page met an unexpected error", detail);
}

/**
 * Whether an error says that its request was given up on purpose.
 * @param {unknown} error
 */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}
