// A server for tests: answers by method and path, and remembers what it was asked.

import { vi } from "vitest";

type Answer = unknown | ((request: Request) => unknown);
export interface Failure {
  status: number;
  body?: unknown;
}

export const failing = (status: number, error_code: string, message = ""): Failure => ({
  status,
  body: { error_code, message, details: {} },
});

const isFailure = (value: unknown): value is Failure =>
  typeof value === "object" && value !== null && "status" in value && typeof value.status === "number";

export function serve(answers: Record<string, Answer>) {
  const asked: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    const answer = answers[`${request.method} ${new URL(request.url).pathname}`];
    const given = typeof answer === "function" ? await answer(request) : answer;
    if (given === undefined) throw new TypeError("nobody answers");
    if (given === null) return new Response(null, { status: 204 });
    if (isFailure(given)) return Response.json(given.body ?? null, { status: given.status });
    return Response.json(given);
  });
  return asked;
}
