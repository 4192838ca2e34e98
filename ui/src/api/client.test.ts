import { describe, expect, it } from "vitest";
import { failing, serve } from "@/test/server";
import { answered, api, setCsrfToken } from "./client";
import { asProblem, problemOf } from "./problem";
import { noteServerDate, serverNow } from "./server-clock";

describe("the client", () => {
  it("sends the CSRF token with what changes something, and the language always", async () => {
    const asked = serve({ "DELETE /api/session": null, "GET /api/session": {} });
    document.documentElement.lang = "en";
    setCsrfToken("the-token");
    await answered(api.DELETE("/api/session"));
    await answered(api.GET("/api/session"));
    expect(asked.map((one) => one.headers.get("X-CSRF-Token"))).toEqual(["the-token", null]);
    expect(asked.map((one) => one.headers.get("Accept-Language"))).toEqual(["en", "en"]);
  });

  it("turns the server's errors into problems", async () => {
    serve({ "GET /api/session": failing(503, "store_busy", "try again") });
    const problem = await answered(api.GET("/api/session")).catch(asProblem);
    expect(problem).toMatchObject({ status: 503, code: "store_busy", message: "try again", passes: true });
  });

  it("knows a server that does not answer", async () => {
    serve({});
    const problem = await answered(api.GET("/api/session")).catch(asProblem);
    expect(problem).toMatchObject({ status: 0, code: "unreachable", passes: true });
  });

  it("is not misled by a proxy's page", () => {
    expect(problemOf(502, "<html>")).toMatchObject({ status: 502, code: "http_502", passes: true });
    expect(problemOf(403, null).passes).toBe(false);
  });
});

describe("the server's clock", () => {
  it("is followed when it differs by more than its own grain", () => {
    const now = Date.now();
    noteServerDate(new Date(now + 600_000).toUTCString(), now);
    expect(serverNow() - Date.now()).toBeGreaterThan(598_000);
    noteServerDate(null);
    expect(serverNow() - Date.now()).toBeGreaterThan(598_000);
    noteServerDate(new Date(now).toUTCString(), now);
    expect(Math.abs(serverNow() - Date.now())).toBeLessThan(100);
  });
});
