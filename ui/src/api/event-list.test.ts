import { describe, expect, it } from "vitest";
import { event, NOW } from "@/test/samples";
import { type EventList, listOf, withNewest, withOlder, withReplaced } from "./event-list";
import type { Event } from "./types";

/** Events named by a number; a higher one began later. */
const some = (...numbers: number[]): Event[] =>
  numbers.map((number) => event({ event_uuid: `e${number}`, start_at: NOW + number * 1000 }));
const names = (list: EventList) => list.events.map((one) => one.event_uuid);
const page = (events: Event[], next_before: string | null = "older") => ({ events, next_before });

describe("the list of events", () => {
  it("grows at its end", () => {
    const list = withOlder(listOf(page(some(9, 8))), page(some(7, 6), null));
    expect(names(list)).toEqual(["e9", "e8", "e7", "e6"]);
    expect(list.nextBefore).toBeNull();
  });

  it("shows no event twice when pages overlap", () => {
    expect(names(withOlder(listOf(page(some(9, 8, 7))), page(some(7, 6))))).toEqual(["e9", "e8", "e7", "e6"]);
  });

  it("takes news at its top and keeps what is below", () => {
    const known = withOlder(listOf(page(some(9, 8))), page(some(7, 6), "before-6"));
    const list = withNewest(known, page(some(10, 9)));
    expect(names(list)).toEqual(["e10", "e9", "e8", "e7", "e6"]);
    expect(list.nextBefore).toBe("before-6");
  });

  it("drops what was deleted", () => {
    const known = withOlder(listOf(page(some(9, 8))), page(some(7, 6)));
    expect(names(withNewest(known, page(some(9, 7))))).toEqual(["e9", "e7", "e6"]);
  });

  it("begins anew rather than leave a hole", () => {
    const known = withOlder(listOf(page(some(4, 3))), page(some(2, 1), null));
    const list = withNewest(known, page(some(9, 8), "before-8"));
    expect(names(list)).toEqual(["e9", "e8"]);
    expect(list.nextBefore).toBe("before-8");
  });

  it("is the newest page when that is everything", () => {
    const list = withNewest(listOf(page(some(2, 1))), page([], null));
    expect(list).toEqual({ events: [], nextBefore: null });
  });

  it("takes the newer state of an event", () => {
    const known = listOf(page([event({ state: "open" }), ...some(-100)]));
    const list = withReplaced(known, [event({ state: "closed" })]);
    expect(list.events[0]?.state).toBe("closed");
    expect(list.events).toHaveLength(2);
  });
});
