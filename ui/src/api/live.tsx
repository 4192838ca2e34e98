// Keeps what pages show up to date: the feed says which nouns changed, those are asked for again.

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { feedAddress } from "./addresses";
import { Feed, type FeedState } from "./feed";
import { asProblem } from "./problem";
import { keys } from "./queries";
import type { Camera, Change } from "./types";

/** News within this time are one question: a busy house must not make every browser ask for every frame. */
const GATHER_MS = 400;
/** Where news never stop, asking is this far apart. */
const APART_MS = 2000;
/**
 * A new still is no news that anybody waits for, and a list of hundreds of cameras costs both sides something: the more
 * there are, the rarer they are asked for when nothing but stills is new.
 */
const STILLS_APART_MS_A_CAMERA = 25;
const STILLS_APART_MAX_MS = 6000;
const STILLS: ReadonlySet<string> = new Set(["look", "frame"]);

/** Without a feed (a proxy may refuse sockets) pages ask by themselves, so they are late but never stuck. */
const ASK_MS = 15_000;

const FeedContext = createContext<FeedState>("connecting");
export const useFeedState = () => useContext(FeedContext);

/** The nouns that a kind of change makes old; their keys begin with them. */
const NOUNS: Record<string, readonly string[]> = {
  camera: ["cameras", "camera"],
  session: ["cameras", "camera", "leases", "workers"],
  look: ["cameras", "jobs"],
  frame: ["cameras", "jobs"],
  // An event that joins or leaves an incident makes that unreviewed again, or over.
  event: ["cameras", "events", "search", "incidents"],
  incident: ["incidents"],
  case: ["cases", "case"],
  delivery: ["deliveries"],
  receiver: ["receivers"],
  site: ["sites"],
  retention: ["retention"],
  suggestion: ["suggestion"],
};

/** What the status of the installation is seen in: cameras that lost their worker, analysis that stalls. */
const OF_SYSTEM = [keys.system, ["workers"], ["leases"], ["jobs"]];

/** The keys of what a change makes old. */
export function keysOf(change: Change): (readonly string[])[] {
  const nouns = (NOUNS[change.kind] ?? []).map((noun) => [noun]);
  return change.kind === "event" && change.object ? [...nouns, keys.event(change.object)] : nouns;
}

/** Collects keys for a moment, then has each asked for again once. */
export class Gatherer {
  private readonly old = new Map<string, readonly string[]>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private askedAt = Number.NEGATIVE_INFINITY;
  /** When the timer goes off. */
  private due = Number.POSITIVE_INFINITY;

  constructor(private readonly client: QueryClient) {}

  add(changes: readonly Change[]): void {
    for (const key of changes.flatMap(keysOf)) this.old.set(key.join("/"), key);
    if (this.old.size === 0) return;
    const now = performance.now();
    const due = Math.max(now + GATHER_MS, this.askedAt + this.apartMs(changes));
    if (due >= this.due) return;
    this.due = due;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), due - now);
  }

  private apartMs(changes: readonly Change[]): number {
    if (!changes.every(({ kind }) => STILLS.has(kind))) return APART_MS;
    const known = this.client.getQueryData<InfiniteData<{ cameras: readonly Camera[] }>>(keys.cameras)?.pages ?? [];
    const cameras = known.reduce((sum, page) => sum + page.cameras.length, 0);
    return Math.min(STILLS_APART_MAX_MS, Math.max(APART_MS, cameras * STILLS_APART_MS_A_CAMERA));
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private flush(): void {
    this.timer = undefined;
    this.due = Number.POSITIVE_INFINITY;
    this.askedAt = performance.now();
    const old = [...this.old.values()];
    this.old.clear();
    for (const queryKey of old) void this.client.invalidateQueries({ queryKey });
  }
}

/** The session, too: what its person may, and which cameras they reach, may be another now. */
function invalidateAll(client: QueryClient): void {
  void client.invalidateQueries();
}

/** What failed for a reason that passes: pages say that it is tried again, and the feed does not speak of it. */
export function invalidateFailed(client: QueryClient): void {
  void client.invalidateQueries({
    predicate: ({ state }) => state.status === "error" && asProblem(state.error).passes,
  });
}

export function LiveUpdates({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<FeedState>("connecting");

  useEffect(() => {
    const gatherer = new Gatherer(client);
    const listener = {
      changes: (changes: readonly Change[]) => gatherer.add(changes),
      system: () => {
        for (const queryKey of OF_SYSTEM) void client.invalidateQueries({ queryKey });
      },
      resync: () => invalidateAll(client),
      state: setState,
      refused: () => void client.invalidateQueries({ queryKey: keys.session }),
    };
    const feed = new Feed(feedAddress, listener);
    feed.open();
    const hurry = () => {
      if (document.visibilityState === "visible") feed.hurry();
    };
    window.addEventListener("online", hurry);
    document.addEventListener("visibilitychange", hurry);
    return () => {
      gatherer.stop();
      feed.close();
      window.removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
    };
  }, [client]);

  useEffect(() => {
    const isLive = state === "live";
    if (isLive) invalidateFailed(client);
    const timer = setInterval(() => (isLive ? invalidateFailed : invalidateAll)(client), ASK_MS);
    return () => clearInterval(timer);
  }, [client, state]);

  return <FeedContext value={state}>{children}</FeedContext>;
}
