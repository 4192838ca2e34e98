// Searching events, what was found by site, camera and the like, and the day at a glance.

import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { answered, api } from "./client";
import { asProblem } from "./problem";
import type { operations } from "./schema";

export type SearchFilter = NonNullable<operations["count_facets"]["parameters"]["query"]>;
export type TimelineAsked = NonNullable<operations["get_timeline"]["parameters"]["query"]>;

const FOUND_PAGE = 48;
/** The server makes its figures every two minutes. */
const TIMELINE_MS = 60_000;

export function useSearch(filter: SearchFilter) {
  return useInfiniteQuery({
    queryKey: ["search", "list", filter],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/search", {
          params: { query: { ...filter, limit: FOUND_PAGE, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
    placeholderData: keepPreviousData,
  });
}

/** Days are counted as a click on one narrows by them: by the reader's own time, if the server knows that zone. */
async function facetsOf(filter: SearchFilter) {
  const ask = (query: SearchFilter) => answered(api.GET("/api/search/facets", { params: { query } }));
  try {
    return await ask({ ...filter, timezone: Intl.DateTimeFormat().resolvedOptions().timeZone });
  } catch (error) {
    if (asProblem(error).details.reason !== "no_zone") throw error;
    return ask(filter);
  }
}

export function useFacets(filter: SearchFilter) {
  return useQuery({
    queryKey: ["search", "facets", filter],
    queryFn: () => facetsOf(filter),
    placeholderData: keepPreviousData,
  });
}

/** The server gives so many cameras at a time; of a house with more of them than these pages hold, the first ones. */
const TIMELINE_PAGES_MAX = 5;

async function wholeTimeline(asked: TimelineAsked) {
  const ask = (after: string) =>
    answered(api.GET("/api/timeline", { params: { query: { ...asked, ...(after ? { after } : {}) } } }));
  const first = await ask("");
  const cameras = [...first.cameras];
  let after: string | null = first.next_after;
  for (let page = 1; after && page < TIMELINE_PAGES_MAX; page += 1) {
    const more: typeof first = await ask(after);
    cameras.push(...more.cameras);
    after = more.next_after;
  }
  return { ...first, cameras };
}

export function useTimeline(asked: TimelineAsked) {
  return useQuery({
    queryKey: ["timeline", asked],
    queryFn: () => wholeTimeline(asked),
    placeholderData: keepPreviousData,
    refetchInterval: TIMELINE_MS,
  });
}

/** The last 24 hours of every camera, by the quarter of an hour. */
export function useDayStrips() {
  return useQuery({
    queryKey: ["timeline", "day"],
    queryFn: () => wholeTimeline({ bucket: "15m" }),
    refetchInterval: TIMELINE_MS,
  });
}
