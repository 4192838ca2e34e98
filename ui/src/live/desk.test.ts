import { afterEach, expect, test, vi } from "vitest";
import { ServerDesk } from "./desk";

const GRANTED = {
  lease_id: "second",
  allowed_quality: "sub",
  stream_url: "ws://127.0.0.1/stream",
  hls_url: "",
  snapshot_url: "",
  ttl_sec: 60,
  remaining_sec: 60,
  heartbeat_interval_sec: 15,
  heartbeat_grace_sec: 45,
  note: null,
  units: 1,
};

afterEach(() => {
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

test("a page waits for the viewing that the page before it gave back and did not hear of", async () => {
  const asked: string[] = [];
  let hear: (answer: Response) => void = () => undefined;
  const given = new Promise<Response>((resolve) => {
    hear = resolve;
  });
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(`${request.method} ${new URL(request.url).pathname}`);
    if (request.method === "DELETE" && asked.length === 1) return given;
    return Response.json(request.method === "POST" ? GRANTED : { released: true });
  });
  sessionStorage.setItem("camserver.viewing.suggest", "first");
  // The page goes: its answer is never heard there.
  new ServerDesk().release("first");
  const next = new ServerDesk();
  await next.ask({ cameraId: "gate", quality: "sub", purpose: "suggest", replaces: null }, () => true);
  expect(asked).toEqual(["DELETE /api/modal/lease/first", "DELETE /api/modal/lease/first", "POST /api/modal/lease"]);
  expect(sessionStorage.getItem("camserver.viewing.suggest")).toBe("second");
  hear(Response.json({ released: true }));
  await given;
  // That of the page before does not take what is this one's.
  expect(sessionStorage.getItem("camserver.viewing.suggest")).toBe("second");
});
