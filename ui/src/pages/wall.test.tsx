import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it } from "vitest";
import { readOwnGroups } from "@/display/wall";
import { dismissNotices } from "@/shell/notices";
import { renderAt } from "@/test/render";
import { AROUND, camera, event, incident, look, NOW } from "@/test/samples";
import { serve } from "@/test/server";

const HOUR_MS = 3_600_000;
const named = (camera_id: string, site: string) =>
  camera({ camera_id, name: camera_id, site, latest: look({ captured_at: Date.now() }) });
const CAMERAS = [named("door", "house"), named("hall", "house"), named("gate", "yard")];
const TIMELINE = {
  ...{ from_at: NOW, to_at: NOW + 24 * HOUR_MS, bucket_ms: HOUR_MS / 4, counted_until: NOW, next_after: null },
  cameras: [
    { camera_id: "gate", camera_name: "gate", site: "yard", looked: "o", severity: "3", events: [[0, 2]] },
    { camera_id: "door", camera_name: "door", site: "house", looked: "o", severity: "1", events: [[0, 1]] },
  ],
};
const ANSWERS = {
  ...AROUND,
  "GET /api/cameras": { cameras: CAMERAS, next_after: null },
  "GET /api/events": { events: [], next_before: null },
  "GET /api/suggest": { suggestion: null },
  "GET /api/timeline": TIMELINE,
};

const shown = () => screen.getAllByRole("article").map((one) => one.getAttribute("aria-label"));

afterEach(dismissNotices);

describe("the wall", () => {
  it("shows a site's cameras with their day, and remembers that and the layout", async () => {
    serve(ANSWERS);
    const first = await renderAt("/");
    await userEvent.click(await screen.findByRole("button", { name: "yard" }));
    expect(shown()).toEqual(["gate"]);
    const rows = screen.getByRole("list", { name: "Events by camera" });
    expect(within(rows).getAllByRole("link")).toHaveLength(1);
    expect(within(rows).getByRole("link", { name: "gate: 2 events" })).toHaveAttribute("href", "/events?camera=gate");
    await userEvent.selectOptions(screen.getByLabelText("Size of pictures"), "4");
    first.unmount();
    await renderAt("/");
    expect(await screen.findByRole("button", { name: "yard", pressed: true })).toBeVisible();
    expect(screen.getByLabelText("Size of pictures")).toHaveValue("4");
    expect(shown()).toEqual(["gate"]);
  });

  it("has groups that people make for themselves", async () => {
    serve(ANSWERS);
    await renderAt("/");
    await userEvent.click(await screen.findByRole("button", { name: "Edit groups" }));
    const dialog = screen.getByRole("dialog");
    await userEvent.type(await within(dialog).findByLabelText("Name of the group"), "Night");
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    expect(within(dialog).getByRole("alert")).toHaveTextContent("Choose at least one camera");
    await userEvent.click(within(dialog).getByLabelText("door"));
    await userEvent.click(within(dialog).getByLabelText("gate"));
    await userEvent.click(within(dialog).getByRole("button", { name: "Save" }));
    expect(readOwnGroups()).toEqual([{ name: "Night", cameras: ["door", "gate"] }]);
    await userEvent.click(screen.getByRole("button", { name: "Night" }));
    expect(shown()).toEqual(["door", "gate"]);
  });

  it("is walked by arrows", async () => {
    serve(ANSWERS);
    await renderAt("/");
    const door = await screen.findByRole("link", { name: "Watch door live" });
    fireEvent.keyDown(document.body, { key: "ArrowDown" });
    expect(document.body).toHaveFocus();
    fireEvent.keyDown(document.body, { key: "ArrowRight" });
    expect(door).toHaveFocus();
    fireEvent.keyDown(door, { key: "ArrowRight" });
    expect(screen.getByRole("link", { name: "Watch hall live" })).toHaveFocus();
  });
});

describe("events", () => {
  it("are gone through and reviewed by keys, and left for a time of the day", async () => {
    const events = [event({ incident_uuid: "i1" }), event({ event_uuid: "e2", incident_uuid: null })];
    const asked = serve({
      ...ANSWERS,
      "GET /api/events": { events, next_before: null },
      "GET /api/incidents/i1": incident(),
      "POST /api/incidents/i1/review": incident({ reviewed_at: NOW }),
    });
    await renderAt(`/events?at=${NOW}`);
    await waitFor(() => expect(screen.getAllByRole("article")).toHaveLength(2));
    expect(asked.some((one) => one.url.includes(`to=${NOW}`))).toBe(true);
    fireEvent.keyDown(document.body, { key: "j" });
    expect(screen.getAllByRole("article")[0]).toHaveAttribute("aria-current", "true");
    fireEvent.keyDown(document.body, { key: "r" });
    expect(await screen.findByText("Entrance was reviewed")).toBeVisible();
    expect(screen.getAllByRole("article")[1]).toHaveAttribute("aria-current", "true");
    await userEvent.click(screen.getByRole("button", { name: "Back to now" }));
    expect(screen.queryByRole("button", { name: "Back to now" })).toBeNull();
  });
});
