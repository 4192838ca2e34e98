// What pages ask for, each with its key. Keys begin with the noun, so that the feed can say which nouns are old.

import {
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useState } from "react";
import { answered, api, setCsrfToken } from "./client";
import { type EventList, listOf, withNewest, withOlder, withReplaced } from "./event-list";
import { asProblem, Problem } from "./problem";
import { forgetBrowser } from "./push";
import type { EventFilter, Session, SystemStatus } from "./types";

export const CAMERAS_PAGE = 100;
export const EVENTS_PAGE = 40;
export const FRAMES_PAGE = 50;
/** How long after a question for the session that got no answer the next one follows. */
const SESSION_AGAIN_MS = 5000;
/** Open events far down the list that are looked at again at once; more than these wait for the next visit. */
const STRAGGLERS_MAX = 10;

export const keys = {
  session: ["session"],
  oidc: ["oidc"],
  cameras: ["cameras"],
  suggestion: ["suggestion"],
  system: ["system"],
  events: ["events"],
  event: (uuid: string) => ["event", uuid],
  vocabulary: ["vocabulary"],
  push: (login: string) => ["push", login],
} as const;

// --- the installation ---

export const statusQuery = queryOptions({
  queryKey: keys.system,
  queryFn: () => answered(api.GET("/api/system/status")),
});

/** Asking again is left to the feed, which tells when it changes, and to the page that shows all of the status. */
export const useLiveBudget = () => useQuery({ ...statusQuery, select: budgetOf });

const budgetOf = ({ modal_budget: units, modal_budget_remaining: left, healthy }: SystemStatus) => ({
  units,
  used: units - left,
  healthy,
});

// --- session ---

export const sessionQuery = queryOptions({
  queryKey: keys.session,
  /** Null: nobody is signed in. */
  queryFn: async (): Promise<Session | null> => {
    try {
      const session = await answered(api.GET("/api/session"));
      setCsrfToken(session.csrf_token);
      return session;
    } catch (error) {
      if (error instanceof Problem && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
  // Without it there is no page, and no feed that would tell when the server is back.
  refetchInterval: ({ state }) => (state.status === "error" ? SESSION_AGAIN_MS : false),
});

export const useSession = () => useQuery(sessionQuery);

/** Whether people can sign in with a provider, and with passwords. */
export const useOidcOffer = () =>
  useQuery({ queryKey: keys.oidc, queryFn: () => answered(api.GET("/api/oidc")), staleTime: 60_000 });

function remember(client: QueryClient, session: Session): void {
  setCsrfToken(session.csrf_token);
  client.setQueryData(keys.session, session);
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: { login: string; password: string }) => answered(api.POST("/api/session", { body })),
    onSuccess: (session) => remember(client, session),
  });
}

export function useSetUp() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (body: {
      token: string;
      login: string;
      password: string;
      display_name: string;
      language: "ja" | "en";
    }) => {
      await answered(api.POST("/api/setup", { body }));
      return answered(api.POST("/api/session", { body: { login: body.login, password: body.password } }));
    },
    onSuccess: (session) => remember(client, session),
  });
}

/** Whose password a one-time link chooses. */
export function usePasswordLink(token: string) {
  return useQuery({
    queryKey: ["password-link", token],
    queryFn: () => answered(api.POST("/api/password-links/look", { body: { token } })),
    enabled: token !== "",
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useChoosePassword() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ token, login, password }: { token: string; login: string; password: string }) => {
      await answered(api.POST("/api/password-links/use", { body: { token, password } }));
      return answered(api.POST("/api/session", { body: { login, password } }));
    },
    onSuccess: (session) => remember(client, session),
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      await forgetBrowser();
      return answered(api.DELETE("/api/session"));
    },
    // Who came in by a provider signs out there as well, and is led back to the sign-in page.
    onSuccess: ({ provider_url }) => {
      if (provider_url) window.location.assign(provider_url);
    },
    onSettled: () => {
      setCsrfToken("");
      client.setQueryData(keys.session, null);
    },
  });
}

// --- cameras ---

/** Looks without anything in them are not in the feed, so stills are asked for at the pace they are taken. */
const STILLS_MIN_MS = 2000;
const STILLS_MAX_MS = 15_000;

/** More than these are there by their names only when somebody looks for them. */
const CAMERAS_MAX = 2000;

/** Choices, groups and counts are about every camera, so all of them are asked for, page by page. */
export function useCameras() {
  const query = useInfiniteQuery({
    queryKey: keys.cameras,
    queryFn: ({ pageParam }) =>
      answered(api.GET("/api/cameras", { params: { query: { after: pageParam, limit: CAMERAS_PAGE } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
    refetchInterval: ({ state }) => {
      const intervals =
        state.data?.pages.flatMap((page) => page.cameras.map((one) => one.polling_interval_sec)) ?? [];
      const shortestMs = Math.min(...intervals, STILLS_MAX_MS / 1000) * 1000;
      return Math.max(STILLS_MIN_MS, shortestMs);
    },
  });
  const { hasNextPage, isFetching, error, fetchNextPage, data, dataUpdatedAt } = query;
  const wanted = hasNextPage && !isFetching && !error && (data?.pages.length ?? 0) * CAMERAS_PAGE < CAMERAS_MAX;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what came in may have been asked for before, and be no next page
  useEffect(() => {
    // Several parts of a page may want it at the same moment.
    if (wanted) void fetchNextPage({ cancelRefetch: false });
  }, [wanted, dataUpdatedAt, fetchNextPage]);
  return query;
}

/** What a camera is called; its id where it is not known, as one that was removed. */
export function useCameraName(): (cameraId: string) => string {
  const { data } = useCameras();
  const names = useMemo(
    () => new Map(data?.pages.flatMap((page) => page.cameras).map(({ camera_id, name }) => [camera_id, name])),
    [data],
  );
  return (cameraId) => names.get(cameraId) ?? cameraId;
}

// --- events ---

const fetchEvents = (filter: EventFilter, before: string | null) =>
  answered(
    api.GET("/api/events", { params: { query: { ...filter, limit: EVENTS_PAGE, ...(before ? { before } : {}) } } }),
  );

async function refreshed(filter: EventFilter, known: EventList | undefined): Promise<EventList> {
  const page = await fetchEvents(filter, null);
  if (!known) return listOf(page);
  const list = withNewest(known, page);
  const read = new Set(page.events.map((event) => event.event_uuid));
  const stragglers = list.events.filter((event) => event.state === "open" && !read.has(event.event_uuid));
  if (stragglers.length === 0) return list;
  const fresh = await Promise.all(
    stragglers
      .slice(0, STRAGGLERS_MAX)
      .map(({ event_uuid }) => answered(api.GET("/api/events/{event_uuid}", { params: { path: { event_uuid } } }))),
  );
  return withReplaced(list, fresh);
}

/** Events that match a filter, newest first. Asking again reads the newest page only and keeps what is below it. */
export function useEvents(filter: EventFilter) {
  const client = useQueryClient();
  const queryKey = [...keys.events, filter];
  const query = useQuery({
    queryKey,
    queryFn: () => refreshed(filter, client.getQueryData<EventList>(queryKey)),
    placeholderData: keepPreviousData,
  });
  const older = useOlder(filter, queryKey);
  return { ...query, ...older };
}

function useOlder(filter: EventFilter, queryKey: readonly unknown[]) {
  const client = useQueryClient();
  const [isFetchingOlder, setFetching] = useState(false);
  const [olderProblem, setProblem] = useState<Problem | null>(null);
  const key = JSON.stringify(queryKey);
  const fetchOlder = useCallback(async () => {
    const queryKey = JSON.parse(key) as readonly unknown[];
    const list = client.getQueryData<EventList>(queryKey);
    if (!list?.nextBefore) return;
    setFetching(true);
    setProblem(null);
    try {
      const page = await fetchEvents(filter, list.nextBefore);
      client.setQueryData<EventList>(queryKey, (now) => now && withOlder(now, page));
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setFetching(false);
    }
  }, [client, filter, key]);
  return { fetchOlder, isFetchingOlder, olderProblem };
}

export function useEvent(uuid: string) {
  return useQuery({
    queryKey: keys.event(uuid),
    queryFn: () => answered(api.GET("/api/events/{event_uuid}", { params: { path: { event_uuid: uuid } } })),
  });
}

export function useEventFrames(uuid: string) {
  return useInfiniteQuery({
    queryKey: [...keys.event(uuid), "frames"],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/events/{event_uuid}/frames", {
          params: {
            path: { event_uuid: uuid },
            query: { limit: FRAMES_PAGE, ...(pageParam ? { after: pageParam } : {}) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_after,
  });
}

// --- words ---

export function useVocabulary() {
  return useQuery({
    queryKey: keys.vocabulary,
    queryFn: () => answered(api.GET("/api/vocabulary")),
    staleTime: 10 * 60_000,
  });
}
