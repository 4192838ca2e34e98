import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";
import { renderAt } from "@/test/render";
import {
  ADMIN,
  AROUND,
  COVERED,
  camera,
  event,
  frame,
  health,
  incident,
  look,
  SESSION,
  VOCABULARY,
  WATCHED_LIVE,
  WRONG_PASSWORD,
} from "@/test/samples";
import { failing, serve } from "@/test/server";
import { tokenOf } from "./setup";
import { safeTarget } from "./sign-in";

const SIGNED_IN = { "GET /api/session": SESSION, "GET /api/vocabulary": VOCABULARY };
const NO_CAMERAS = { "GET /api/cameras": { cameras: [], next_after: null } };
const NO_EVENTS = { "GET /api/events": { events: [], next_before: null } };

describe("set-up", () => {
  it("sends once what is clicked twice", async () => {
    const asked = serve({ "POST /api/setup": { login: "me" }, "POST /api/session": SESSION });
    vi.stubGlobal("location", { hash: "#token=abc", origin: location.origin, protocol: "http:", host: "house" });
    await renderAt("/setup");
    await userEvent.type(screen.getByLabelText("Login name"), "me");
    await userEvent.type(screen.getByLabelText("Password"), "long enough, surely");
    await userEvent.dblClick(screen.getByRole("button", { name: "Make the account" }));
    await waitFor(() => expect(asked.some((one) => one.url.endsWith("/api/session"))).toBe(true));
    expect(asked.filter((one) => one.url.endsWith("/api/setup"))).toHaveLength(1);
  });

  it("reads the token from the fragment only", () => {
    expect(tokenOf("#token=abc")).toBe("abc");
    expect(tokenOf("")).toBeNull();
  });

  it("says how to get a link where there is none", async () => {
    serve({});
    await renderAt("/setup");
    expect(await screen.findByText("camserver setup-link")).toBeVisible();
  });

  it("makes the account, signs in and shows the wall", async () => {
    const asked = serve({
      ...SIGNED_IN,
      ...NO_CAMERAS,
      ...NO_EVENTS,
      "POST /api/setup": { login: "me" },
      "POST /api/session": SESSION,
    });
    vi.stubGlobal("location", { hash: "#token=abc", origin: location.origin, protocol: "http:", host: "house" });
    await renderAt("/setup");
    await userEvent.type(screen.getByLabelText("Login name"), "me");
    await userEvent.type(screen.getByLabelText("Password"), "long enough, surely");
    await userEvent.click(screen.getByRole("button", { name: "Make the account" }));
    expect(await screen.findByText("No cameras yet")).toBeVisible();
    const sent = await asked.find((one) => one.url.endsWith("/api/setup"))?.json();
    expect(sent).toEqual({
      token: "abc",
      login: "me",
      password: "long enough, surely",
      display_name: "",
      language: "en",
    });
  });
});

describe("choosing a password", () => {
  it("asks for the whole link where the token is missing", async () => {
    serve({});
    await renderAt("/password");
    expect(await screen.findByText("Open the whole link that an administrator gave you.")).toBeVisible();
  });

  it("names whose password it is, sets it and signs in", async () => {
    const asked = serve({
      ...SIGNED_IN,
      ...NO_CAMERAS,
      ...NO_EVENTS,
      "POST /api/password-links/look": { login: "guard", display_name: "Guard" },
      "POST /api/password-links/use": null,
      "POST /api/session": SESSION,
    });
    vi.stubGlobal("location", { hash: "#token=abc", origin: location.origin, protocol: "http:", host: "house" });
    await renderAt("/password");
    expect(await screen.findByText(/Choose the password of guard/)).toBeVisible();
    await userEvent.type(screen.getByLabelText("Password"), "long enough, surely");
    await userEvent.click(screen.getByRole("button", { name: "Set the password" }));
    expect(await screen.findByText("No cameras yet")).toBeVisible();
    const used = await asked.find((one) => one.url.endsWith("/api/password-links/use"))?.json();
    expect(used).toEqual({ token: "abc", password: "long enough, surely" });
    const signedIn = await asked.findLast((one) => one.url.endsWith("/api/session") && one.method === "POST")?.json();
    expect(signedIn).toEqual({ login: "guard", password: "long enough, surely" });
  });

  it("says when the link works no more", async () => {
    serve({ "POST /api/password-links/look": failing(403, "forbidden", "the link was used already") });
    vi.stubGlobal("location", { hash: "#token=abc", origin: location.origin, protocol: "http:", host: "house" });
    await renderAt("/password");
    expect(await screen.findByText(/the link was used already/)).toBeVisible();
  });
});

describe("sign-in", () => {
  it("goes only to pages of this site", () => {
    expect(safeTarget("/events?severity=2")).toBe("/events?severity=2");
    for (const next of [
      null,
      "",
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "/\t/evil.example",
      "/\n/evil.example",
      "/events\r",
      "/events\\",
      "/a b",
      "/\u3042",
      `/${"a".repeat(1024)}`,
    ]) {
      expect(safeTarget(next)).toBe("/");
    }
    expect(safeTarget(`/${"a".repeat(1023)}`)).toBe(`/${"a".repeat(1023)}`);
  });

  it("is asked for, says what is wrong, and leads back", async () => {
    let right = false;
    serve({
      ...SIGNED_IN,
      ...NO_CAMERAS,
      ...NO_EVENTS,
      "GET /api/session": () => (right ? SESSION : failing(401, "unauthenticated")),
      "POST /api/session": () => (right ? SESSION : failing(401, "unauthenticated", "login or password is wrong")),
    });
    await renderAt("/events");
    await userEvent.type(await screen.findByLabelText("Login name"), "me");
    await userEvent.type(screen.getByLabelText("Password"), "x");
    await userEvent.click(screen.getByRole("button", { name: "Sign in" }));
    expect(await screen.findByRole("alert")).toHaveTextContent("login or password is wrong");
    right = true;
    await userEvent.click(screen.getByRole("button", { name: "Sign in" }));
    expect(await screen.findByText("No events yet")).toBeVisible();
  });
});

describe("sign-in with a provider", () => {
  const OFFER = {
    enabled: true,
    start_url: "https://cameras.example/api/oidc/start",
    label_ja: "例でサインイン",
    label_en: "Sign in with Example",
    passwords: true,
  };
  const NOBODY = { "GET /api/session": failing(401, "unauthenticated") };

  it("is a button beside the form, which leads to the server with the page asked for", async () => {
    serve({ ...NOBODY, "GET /api/oidc": OFFER });
    await renderAt("/sign-in?next=%2Fevents");
    const link = await screen.findByRole("link", { name: "Sign in with Example" });
    expect(link).toHaveAttribute("href", `${OFFER.start_url}?next=%2Fevents`);
    expect(screen.getByLabelText("Login name")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "日本語" }));
    expect(await screen.findByRole("link", { name: "例でサインイン" })).toBeVisible();
  });

  it("is the only way where passwords are off, and not there where it is not set up", async () => {
    serve({ ...NOBODY, "GET /api/oidc": { ...OFFER, passwords: false } });
    const shown = await renderAt("/sign-in");
    await screen.findByRole("link", { name: "Sign in with Example" });
    expect(screen.queryByLabelText("Login name")).toBeNull();
    shown.unmount();
    serve({ ...NOBODY, "GET /api/oidc": { ...OFFER, enabled: false } });
    await renderAt("/sign-in");
    expect(await screen.findByLabelText("Login name")).toBeVisible();
    expect(screen.queryByRole("link", { name: "Sign in with Example" })).toBeNull();
  });

  it("says what went wrong by its code, and never what the address says", async () => {
    serve({ ...NOBODY, "GET /api/oidc": OFFER });
    const shown = await renderAt("/sign-in?problem=disabled");
    expect(await screen.findByRole("alert")).toHaveTextContent("Your account here is switched off.");
    shown.unmount();
    await renderAt("/sign-in?problem=%3Cb%3Epay%20here");
    expect(await screen.findByRole("alert")).toHaveTextContent("Signing in did not work. Try again.");
  });
});

describe("the wall", () => {
  it("says how to add a camera where there is none", async () => {
    serve({ ...SIGNED_IN, "GET /api/session": ADMIN, ...NO_CAMERAS, ...NO_EVENTS });
    await renderAt("/");
    expect(await screen.findByText(/camserver camera add/)).toBeVisible();
    expect(screen.getByRole("link", { name: "Add your first camera" })).toHaveAttribute("href", "/cameras/add");
  });

  it("shows what is seen, what goes on, and why there is no picture", async () => {
    const now = Date.now();
    const cameras = [
      camera({
        latest: look({ captured_at: now }),
        latest_picture: { frame_uuid: "f1", captured_at: now - 4000 },
        open_event: { event_uuid: "e1", primary_event: "human", severity_max: 3, start_at: now },
      }),
      camera({
        camera_id: "gate",
        name: "Gate",
        latest: look({ status: "error", error_code: "unauthorized" }),
        latest_picture: null,
        health: health({ state: "down", cause: WRONG_PASSWORD }),
      }),
      camera({
        camera_id: "yard",
        name: "Yard",
        latest: look({ captured_at: now }),
        health: health({ issues: [{ ...COVERED, since: now, event_uuid: "e9" }] }),
      }),
    ];
    cameras.push(camera({ camera_id: "stairs", name: "Stairs", stream_fault: WATCHED_LIVE }));
    serve({ ...SIGNED_IN, ...NO_EVENTS, "GET /api/cameras": { cameras, next_after: null } });
    await renderAt("/");
    const entrance = await screen.findByRole("article", { name: "Entrance" });
    expect(await within(entrance).findByAltText("Newest picture of Entrance")).toHaveAttribute(
      "src",
      "/api/frames/f1/picture?kind=infer",
    );
    expect(within(entrance).getByText(/^\d+ s ago$/)).toBeVisible();
    expect(within(entrance).getByText("Alarm")).toBeVisible();
    expect(await within(entrance).findByText("Person detected")).toBeVisible();
    const gate = screen.getByRole("article", { name: "Gate" });
    expect(gate).toHaveTextContent("It refuses user name or password");
    expect(gate).toHaveTextContent("no picture so far");
    expect(screen.getByRole("article", { name: "Stairs" })).toHaveTextContent(
      "Another camera of its device is being watched live; its looks wait",
    );
    const yard = screen.getByRole("article", { name: "Yard" });
    expect(yard).toHaveTextContent("Camera covered, or completely dark");
    expect(within(yard).getByRole("link", { name: "Events of this camera" })).toHaveAttribute("href", "/events/e9");
    expect(within(yard).getByRole("link", { name: "Watch Yard live" })).toHaveAttribute("href", "/?live=yard");
  });

  it("says what failed, and tries again when asked", async () => {
    let works = false;
    serve({
      ...SIGNED_IN,
      ...NO_EVENTS,
      "GET /api/cameras": () =>
        works ? { cameras: [camera()], next_after: null } : failing(503, "store_busy", "busy"),
    });
    await renderAt("/");
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent("busy");
    expect(alert).toHaveTextContent("Code: store_busy");
    works = true;
    await userEvent.click(within(alert).getByRole("button", { name: "Try again" }));
    expect(await screen.findByRole("article", { name: "Entrance" })).toBeVisible();
  });

  it("keeps showing what it knew when the server goes away", async () => {
    let works = true;
    serve({
      ...SIGNED_IN,
      ...NO_EVENTS,
      "GET /api/cameras": () => (works ? { cameras: [camera()], next_after: null } : undefined),
    });
    const { client } = await renderAt("/");
    await screen.findByRole("article", { name: "Entrance" });
    works = false;
    await client.invalidateQueries({ queryKey: ["cameras"] });
    expect(await screen.findByText(/Can't refresh/)).toBeVisible();
    expect(screen.getByText("Code: unreachable")).toBeVisible();
    expect(screen.getByRole("article", { name: "Entrance" })).toBeVisible();
  });

  it("sends whoever is signed out meanwhile to the sign-in", async () => {
    let signedIn = true;
    serve({
      ...SIGNED_IN,
      ...NO_EVENTS,
      "GET /api/cameras": () =>
        signedIn ? { cameras: [camera()], next_after: null } : failing(401, "unauthenticated", "sign in"),
    });
    const { client } = await renderAt("/");
    await screen.findByRole("article", { name: "Entrance" });
    signedIn = false;
    await client.invalidateQueries({ queryKey: ["cameras"] });
    expect(await screen.findByRole("heading", { name: "Sign in" })).toBeVisible();
  });
});

describe("the events", () => {
  it("are asked for by the filter in the address", async () => {
    const asked = serve({ ...SIGNED_IN, ...NO_CAMERAS, ...NO_EVENTS });
    await renderAt("/events?severity=2&camera=gone");
    expect(await screen.findByText("No event matches")).toBeVisible();
    const query = new URL(asked.find((one) => one.url.includes("/api/events"))?.url ?? "").searchParams;
    expect([query.get("severity_min"), query.get("camera_id")]).toEqual(["2", "gone"]);
    expect(screen.getByLabelText("Camera")).toHaveValue("gone");
    await userEvent.click(screen.getAllByRole("button", { name: "Clear the filter" })[0] as HTMLElement);
    expect(await screen.findByText("No events yet")).toBeVisible();
  });

  it("go on with older ones, and news come on top", async () => {
    let newest = [event({ event_uuid: "e2", start_at: 2000, camera_name: "Second" })];
    serve({
      ...SIGNED_IN,
      ...NO_CAMERAS,
      "GET /api/events": (request: Request) =>
        new URL(request.url).searchParams.get("before") === "cursor"
          ? { events: [event({ event_uuid: "e1", start_at: 1000, camera_name: "First" })], next_before: null }
          : { events: newest, next_before: "cursor" },
    });
    const { client } = await renderAt("/events");
    await userEvent.click(await screen.findByRole("button", { name: "Load more" }));
    expect(await screen.findByText("There are no earlier events")).toBeVisible();
    newest = [event({ event_uuid: "e3", start_at: 3000, camera_name: "Third", state: "open" }), ...newest];
    await client.invalidateQueries({ queryKey: ["events"] });
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(3));
    const cards = screen.getAllByRole("article").map((card) => card.textContent);
    expect(cards.map((text) => /First|Second|Third/.exec(text ?? "")?.[0])).toEqual(["Third", "Second", "First"]);
    expect(within(screen.getAllByRole("article")[0] as HTMLElement).getByText("Ongoing")).toBeVisible();
  });
});

describe("without a feed", () => {
  it("pages ask by themselves", async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    try {
      let events = [event()];
      serve({ ...SIGNED_IN, ...NO_CAMERAS, "GET /api/events": () => ({ events, next_before: null }) });
      await renderAt("/events");
      await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(1));
      events = [event({ event_uuid: "e2" }), event()];
      await vi.advanceTimersByTimeAsync(15_000);
      await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("an event", () => {
  const tags = [
    { id: "count.single", label_ja: "1名", label_en: "One person", group: "notify_safe", severity_default: 0 },
    {
      id: "outfit.suit_like",
      label_ja: "スーツ",
      label_en: "A suit",
      group: "investigation_only",
      severity_default: 0,
    },
  ];
  const detail = { ...event({ state: "open", end_at: null }), tags, incident: null, best_frame: frame(), scores: [] };
  const frames = [frame(), frame({ frame_uuid: "f2", boxes: [], severity: 0, confidence: 0.5 })];
  const ANSWERS = {
    ...SIGNED_IN,
    "GET /api/events/e1": detail,
    "GET /api/events/e1/frames": { frames, next_after: null },
  };

  it("shows its best picture with boxes, its tags and its frames", async () => {
    serve(ANSWERS);
    await renderAt("/events/e1");
    expect(await screen.findByRole("heading", { level: 1, name: "Person detected" })).toBeVisible();
    expect(screen.getByText("One person")).toBeVisible();
    expect(screen.getByText("(investigation only)")).toBeVisible();
    expect(await screen.findByText("person 90%")).toBeVisible();
    await userEvent.click(screen.getByLabelText("Show boxes"));
    expect(screen.queryByText("person 90%")).toBeNull();
    expect(localStorage.getItem("camserver.boxes")).toBe("off");
  });

  it("shows what the analyzer warned of below the picture it was about", async () => {
    const warned = frame({ warnings: ["hints: nothing is called 'humann'"] });
    serve({
      ...ANSWERS,
      "GET /api/events/e1": { ...detail, best_frame: warned },
      "GET /api/events/e1/frames": { frames: [warned, frames[1]], next_after: null },
    });
    await renderAt("/events/e1");
    expect(await screen.findByText("hints: nothing is called 'humann'")).toBeVisible();
    await userEvent.click(await screen.findByRole("button", { name: "Next picture" }));
    expect(screen.queryByText("Notes of the analyzer")).toBeNull();
  });

  it("goes from picture to picture by mouse and by keys", async () => {
    serve(ANSWERS);
    await renderAt("/events/e1");
    await userEvent.click(await screen.findByRole("button", { name: "Next picture" }));
    expect(await screen.findByText("50% sure")).toBeVisible();
    expect(screen.getByRole("button", { name: "Next picture" })).toBeDisabled();
    const strip = screen.getByRole("list", { name: "Pictures of this event" });
    const [first, second] = within(strip).getAllByRole("button") as [HTMLElement, HTMLElement];
    second.focus();
    await userEvent.keyboard("{ArrowLeft}");
    expect(first).toHaveFocus();
    expect(first).toHaveAttribute("aria-current", "true");
    expect(screen.getByText("90% sure")).toBeVisible();
  });

  it("says whether it was reviewed, and that is turned by R", async () => {
    const reviewed = new Set<string>();
    const of = () => incident({ incident_uuid: "i1", reviewed_at: reviewed.has("i1") ? 1 : null });
    serve({
      ...ANSWERS,
      ...AROUND,
      "GET /api/events/e1": () => ({ ...detail, incident_uuid: "i1", incident: of() }),
      "GET /api/incidents/i1": of,
      "GET /api/deliveries": { deliveries: [], next_before: null },
      "POST /api/incidents/i1/review": () => {
        reviewed.add("i1");
        return of();
      },
      "DELETE /api/incidents/i1/review": () => {
        reviewed.delete("i1");
        return of();
      },
    });
    await renderAt("/events/e1");
    expect(await screen.findByRole("button", { name: "Mark as reviewed" })).toBeVisible();
    await userEvent.keyboard("r");
    expect(await screen.findByText("Reviewed")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Take the review back" }));
    expect(await screen.findByRole("button", { name: "Mark as reviewed" })).toBeVisible();
    expect(screen.queryByText("Reviewed")).toBeNull();
  });

  it("goes on to the next one of the list it was opened from, and back to where one was in it", async () => {
    const second = { ...detail, event_uuid: "e2", camera_name: "Yard", best_frame: null };
    serve({
      ...ANSWERS,
      "GET /api/events": { events: [event(), event({ event_uuid: "e2", camera_name: "Yard" })], next_before: null },
      "GET /api/events/e2": second,
      "GET /api/events/e2/frames": { frames: [], next_after: null },
    });
    await renderAt("/events?severity=1");
    await userEvent.click((await screen.findAllByRole("link", { name: "Person detected" }))[0] as HTMLElement);
    expect(await screen.findByRole("button", { name: "Previous event" })).toBeDisabled();
    await userEvent.keyboard("j");
    expect(await screen.findByRole("link", { name: "Yard" })).toBeVisible();
    expect(screen.getByRole("button", { name: "Next event" })).toBeDisabled();
    const back = screen.getByRole("link", { name: "Back to the list" });
    expect(back).toHaveAttribute("href", "/events?severity=1");
    await userEvent.click(back);
    await waitFor(() => expect(screen.getAllByRole("article")[1]).toHaveAttribute("aria-current", "true"));
  });

  it("that was not opened from a list leads to all events", async () => {
    serve(ANSWERS);
    await renderAt("/events/e1");
    expect(await screen.findByRole("link", { name: "To the events" })).toHaveAttribute("href", "/events");
    expect(screen.queryByRole("button", { name: "Next event" })).toBeNull();
  });

  it("that is gone says so", async () => {
    serve({ ...SIGNED_IN, "GET /api/events/e1": failing(404, "not_found", "no such event") });
    await renderAt("/events/e1");
    expect(await screen.findByText("There is no such event")).toBeVisible();
    expect(screen.getByRole("link", { name: "To the events" })).toBeVisible();
  });
});

describe("around the pages", () => {
  it("an unknown address says so", async () => {
    serve({ ...SIGNED_IN });
    await renderAt("/nothing/here");
    expect(await screen.findByText("There is no such page")).toBeVisible();
  });

  it("language and theme can be changed and are kept", async () => {
    serve({ ...SIGNED_IN, ...NO_CAMERAS, ...NO_EVENTS });
    document.documentElement.classList.add("dark");
    await renderAt("/events");
    await userEvent.click(await screen.findByRole("button", { name: "Use the light theme" }));
    expect(document.documentElement).not.toHaveClass("dark");
    expect(localStorage.getItem("camserver.theme")).toBe("light");
    await userEvent.click(screen.getByRole("button", { name: "日本語" }));
    expect(await screen.findByRole("heading", { level: 1, name: "イベント" })).toBeVisible();
    expect(localStorage.getItem("camserver.language")).toBe("ja");
  });

  it("signing out forgets everything", async () => {
    const asked = serve({ ...SIGNED_IN, ...NO_CAMERAS, ...NO_EVENTS, "DELETE /api/session": null });
    const { client } = await renderAt("/events");
    await userEvent.click(await screen.findByRole("button", { name: "Account: First" }));
    await userEvent.click(await screen.findByRole("menuitem", { name: "Sign out" }));
    expect(await screen.findByRole("heading", { name: "Sign in" })).toBeVisible();
    expect(asked.find((one) => one.method === "DELETE")?.headers.get("X-CSRF-Token")).toBe("the-token");
    expect(client.getQueryData(["cameras"])).toBeUndefined();
  });
});
