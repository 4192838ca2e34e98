// What can go wrong with a request, in one shape: the server's own error answer, or that there was none.

export class Problem extends Error {
  constructor(
    readonly status: number, // 0: no answer at all
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = "Problem";
  }

  /** Whether the same request may work in a moment without anybody doing something. */
  get passes(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** The code of a request that got no answer: no network, no server, or something else in between. */
export const UNREACHABLE = "unreachable";

export function problemOf(status: number, body: unknown): Problem {
  const { error_code, message, details } = (body ?? {}) as Record<string, unknown>;
  if (typeof error_code === "string" && typeof message === "string") {
    const known = typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {};
    return new Problem(status, error_code, message, known);
  }
  // A proxy's page, or a connection cut in the middle.
  return new Problem(status, `http_${status}`, "");
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, UNREACHABLE, "");
}
