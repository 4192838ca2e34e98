// The list of events as it is kept while the page is open: grows downwards by pages and upwards by news.

import type { Event, EventPage } from "./types";

export interface EventList {
  events: readonly Event[];
  nextBefore: string | null; // null: there is nothing older
}

export const listOf = (page: EventPage): EventList => ({ events: page.events, nextBefore: page.next_before });

function newestFirst(a: Event, b: Event): number {
  if (a.start_at !== b.start_at) return b.start_at - a.start_at;
  return a.event_uuid === b.event_uuid ? 0 : a.event_uuid < b.event_uuid ? 1 : -1;
}

/** With an older page added at the end. */
export function withOlder(list: EventList, page: EventPage): EventList {
  return { events: united(page.events, list.events), nextBefore: page.next_before };
}

/** With the newest page read again. Where it no longer reaches what was known, the rest would leave a hole: it goes. */
export function withNewest(list: EventList, page: EventPage): EventList {
  const known = new Set(list.events.map((event) => event.event_uuid));
  const oldest = page.events.at(-1);
  const reaches = page.events.some((event) => known.has(event.event_uuid));
  if (!oldest || page.next_before === null || !reaches) return listOf(page);
  // What the newest page should hold and does not was deleted, or no longer matches the filter.
  const older = list.events.filter((event) => newestFirst(oldest, event) < 0);
  return older.length > 0 ? { events: [...page.events, ...older], nextBefore: list.nextBefore } : listOf(page);
}

/** With single events replaced where they are in the list. */
export function withReplaced(list: EventList, fresh: readonly Event[]): EventList {
  const byUuid = new Map(fresh.map((event) => [event.event_uuid, event]));
  return { ...list, events: list.events.map((event) => byUuid.get(event.event_uuid) ?? event) };
}

function united(stronger: readonly Event[], weaker: readonly Event[]): Event[] {
  const byUuid = new Map([...weaker, ...stronger].map((event) => [event.event_uuid, event]));
  return [...byUuid.values()].sort(newestFirst);
}
