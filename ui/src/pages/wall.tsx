import { Grid2x2, Settings2, SquareDashed } from "lucide-react";
import { type RefObject, Suspense, useCallback, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { useCameras, useEvents } from "@/api/queries";
import type { Camera } from "@/api/types";
import { CameraTile, CameraTileSkeleton } from "@/components/camera-tile";
import { DayStrip } from "@/components/day-strip";
import { EmptyState } from "@/components/empty-state";
import { EventCard, EventCardSkeleton } from "@/components/event-card";
import { FirstRun } from "@/components/first-run";
import { ProblemNotice, StaleNotice } from "@/components/problem-notice";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { ChoiceRow } from "@/components/ui/tabs";
import { STANDING_STEP_MS } from "@/display/camera-standing";
import { keep, readKept } from "@/display/kept";
import {
  ALL,
  besides,
  camerasOf,
  isTroubled,
  keepOwnGroups,
  LAYOUTS,
  type Layout,
  type OwnGroup,
  ownGroup,
  readLayout,
  readOwnGroups,
  siteGroup,
  sitesOf,
} from "@/display/wall";
import { useAddress } from "@/hooks/use-address";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/wall";
import { liveTarget } from "@/live/addresses";
import { SuggestPane } from "@/live/suggest-pane";
import { useShortcuts } from "@/shell/keyboard";
import { later } from "@/shell/later";

const useWords = addWords("wall", words);
const WallGroups = later(() => import("@/components/wall-groups"), "default");

const SKELETONS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const LATEST_SHOWN = 8;
const ALL_EVENTS = {};
/** So many tiles may be on the screen at first, whatever its size; the others wait until they come near. */
const FIRST_TILES = 24;

export function WallPage() {
  const { t } = useTranslation();
  usePageTitle(t("wall.title"));
  const query = useCameras();
  const cameras = useMemo(() => query.data?.pages.flatMap((page) => page.cameras), [query.data]);
  const retry = useCallback(() => void query.refetch(), [query.refetch]);
  const choices = useWallChoices(cameras ?? NONE);
  const shownIds = useStable(choices.shown.map((camera) => camera.camera_id));
  const cameraIds = useMemo(() => new Set(shownIds), [shownIds]);
  const isEmpty = cameras?.length === 0;
  return (
    <div className="grid grid-cols-1 gap-x-6 gap-y-5 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <section aria-labelledby="wall-title" className="min-w-0">
        <div className="mb-2 flex min-h-8 flex-wrap items-center gap-x-3 gap-y-2">
          <h1 id="wall-title" className="font-semibold text-xl">
            {t("wall.title")}
          </h1>
          {cameras && !isEmpty && <Summary cameras={cameras} onGroup={choices.onGroup} />}
        </div>
        {!isEmpty && <Controls cameras={cameras ?? NONE} choices={choices} />}
        {query.error && cameras && <StaleNotice error={query.error} onRetry={retry} at={query.dataUpdatedAt} />}
        {query.error && !cameras && <ProblemNotice error={query.error} onRetry={retry} />}
        {query.isPending && !query.error && <Skeletons layout={choices.layout} />}
        {isEmpty && <FirstRun />}
        {cameras && !isEmpty && choices.shown.length > 0 && <Tiles cameras={choices.shown} layout={choices.layout} />}
        {cameras && !isEmpty && choices.shown.length === 0 && <EmptyGroup onAll={() => choices.onGroup(ALL)} />}
      </section>
      {/* Beside the tiles where there is room, and stays there; elsewhere what is to be watched comes before them. */}
      <div className="max-xl:contents xl:sticky xl:top-[4.75rem] xl:-m-1 xl:grid xl:grid-cols-1 xl:max-h-[calc(100dvh-5.5rem)] xl:content-start xl:gap-5 xl:self-start xl:overflow-y-auto xl:p-1">
        {!isEmpty && (
          <div className="max-xl:order-first">
            <SuggestPane />
          </div>
        )}
        {!isEmpty && <DayStrip cameraIds={cameraIds} />}
        <LatestEvents />
      </div>
    </div>
  );
}

const NONE: readonly Camera[] = [];

/** The same list as before where nothing in it changed. */
function useStable(names: readonly string[]): readonly string[] {
  const key = names.join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key says all of it
  return useMemo(() => names, [key]);
}

interface WallChoices {
  group: string;
  onGroup: (group: string) => void;
  layout: Layout;
  onLayout: (layout: Layout) => void;
  own: readonly OwnGroup[];
  onOwn: (own: OwnGroup[]) => void;
  shown: readonly Camera[];
}

/** In the address, and remembered for the next visit without one. */
function useWallChoices(cameras: readonly Camera[]): WallChoices {
  const { address, patch } = useAddress();
  const now = useNowBy(STANDING_STEP_MS);
  const [own, setOwn] = useState(readOwnGroups);
  const group = address.get("group") ?? readKept("wall.group") ?? ALL;
  const shown = useMemo(() => camerasOf(group, cameras, own, now), [group, cameras, own, now]);
  return {
    group,
    onGroup: (chosen) => {
      keep("wall.group", chosen);
      patch({ group: chosen === ALL ? null : chosen });
    },
    layout: readLayout(address.get("layout")),
    onLayout: (chosen) => {
      keep("wall.layout", chosen);
      patch({ layout: chosen === "auto" ? null : chosen });
    },
    own,
    onOwn: (changed) => {
      setOwn(changed);
      keepOwnGroups(changed);
    },
    shown,
  };
}

function Controls({ cameras, choices }: { cameras: readonly Camera[]; choices: WallChoices }) {
  const { t } = useWords();
  const [editing, setEditing] = useState(false);
  const sites = useMemo(() => sitesOf(cameras), [cameras]);
  const { own, group } = choices;
  const groups = [
    { value: ALL, text: t("all") },
    ...(sites.length > 1 ? sites.map((site) => ({ value: siteGroup(site), text: groupName(site) })) : []),
    ...own.map(({ name }) => ({ value: ownGroup(name), text: groupName(name) })),
    // Reached by the badges above; shown here while it is chosen.
    ...(group === "ongoing" || group === "troubled" ? [{ value: group, text: t(group) }] : []),
  ];
  const chosen = groups.some((one) => one.value === group) ? group : ALL;
  return (
    <div className="mb-3 flex min-h-10 items-center gap-x-3 gap-y-1 sm:flex-wrap">
      <ChoiceRow label={t("groups")} choices={groups} chosen={chosen} onChoose={choices.onGroup} />
      <Button
        variant="ghost"
        size="icon"
        className="size-8"
        aria-label={t("ownGroups")}
        title={t("ownGroups")}
        disabled={cameras.length === 0}
        onClick={() => setEditing(true)}
      >
        <Settings2 aria-hidden="true" />
      </Button>
      <label className="ml-auto flex items-center gap-2 text-sm">
        <Grid2x2 aria-hidden="true" className="size-4 text-quiet" />
        <span className="sr-only">{t("layout")}</span>
        <select
          value={choices.layout}
          onChange={(event) => choices.onLayout(readLayout(event.target.value))}
          className="h-8 rounded-md border bg-ground px-2 text-sm"
        >
          {LAYOUTS.map((one) => (
            <option key={one} value={one}>
              {t(`layouts.${one}`)}
            </option>
          ))}
        </select>
      </label>
      <Dialog open={editing} onClose={() => setEditing(false)} title={t("ownGroups")}>
        {editing && (
          <Suspense fallback={<div aria-busy="true" className="h-80" />}>
            <WallGroups cameras={cameras} groups={own} onChange={choices.onOwn} onClose={() => setEditing(false)} />
          </Suspense>
        )}
      </Dialog>
    </div>
  );
}

/** A long one leaves room for the others. */
const groupName = (name: string) => (
  <span title={name} className="max-w-44 truncate">
    {name}
  </span>
);

const GRIDS: Record<Layout, string> = {
  auto: "grid-cols-[repeat(auto-fill,minmax(min(100%,18rem),1fr))] gap-4",
  "2": "grid-cols-1 sm:grid-cols-2 gap-4",
  "3": "grid-cols-2 md:grid-cols-3 gap-3",
  "4": "grid-cols-2 sm:grid-cols-3 lg:grid-cols-4 gap-3",
  "6": "grid-cols-3 sm:grid-cols-4 lg:grid-cols-6 gap-2",
};

const tileLinks = (list: HTMLElement | null) => [...(list?.querySelectorAll<HTMLElement>("a[data-tile]") ?? [])];

/** As many as stand in the first line. */
function columnsOf(links: readonly HTMLElement[]): number {
  const tops = links.map((link) => link.closest("li")?.offsetTop);
  return Math.max(1, tops.filter((top) => top === tops[0]).length);
}

function Tiles({ cameras, layout }: { cameras: readonly Camera[]; layout: Layout }) {
  const { t } = useWords();
  const ref = useRef<HTMLUListElement>(null);
  useWallKeys(ref, cameras);
  return (
    <ul ref={ref} aria-label={t("camerasList")} className={`grid ${GRIDS[layout]}`}>
      {cameras.map((camera, place) => (
        <li key={camera.camera_id}>
          <CameraTile camera={camera} first={place < FIRST_TILES} />
        </li>
      ))}
    </ul>
  );
}

/** Arrows go from tile to tile, Enter opens (the browser's own), 1–9 open the first ones. */
function useWallKeys(list: RefObject<HTMLUListElement | null>, cameras: readonly Camera[]): void {
  const { t } = useWords();
  const { address } = useAddress();
  const navigate = useNavigate();
  const isInside = () => list.current?.contains(document.activeElement) ?? false;

  function move(key: string): void {
    const links = tileLinks(list.current);
    const here = links.findIndex((link) => link.closest("li")?.contains(document.activeElement));
    const next = here < 0 ? 0 : besides(here, links.length, columnsOf(links), key);
    links[next]?.focus();
    links[next]?.closest("li")?.scrollIntoView?.({ block: "nearest" });
  }

  useShortcuts([
    // Up and down scroll the page until somebody is among the tiles.
    ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((key, place) => ({
      key,
      name: t("move"),
      shown: place === 0 ? "← ↑ ↓ →" : "",
      when: () => isInside() || place < 2,
      run: () => move(key),
    })),
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ({
      key: String(number),
      name: t("openNth"),
      shown: number === 1 ? "1–9" : "",
      run: () => {
        const camera = cameras[number - 1];
        if (camera) void navigate(liveTarget(address.toString(), camera.camera_id));
      },
    })),
  ]);
}

function Skeletons({ layout }: { layout: Layout }) {
  return (
    <ul aria-busy="true" className={`grid ${GRIDS[layout]}`}>
      {SKELETONS.map((name) => (
        <li key={name}>
          <CameraTileSkeleton />
        </li>
      ))}
    </ul>
  );
}

function EmptyGroup({ onAll }: { onAll: () => void }) {
  const { t } = useWords();
  return (
    <EmptyState Icon={SquareDashed} title={t("emptyTitle")} lead={t("emptyLead")}>
      <Button variant="outline" onClick={onAll}>
        {t("showAll")}
      </Button>
    </EmptyState>
  );
}

function Summary({ cameras, onGroup }: { cameras: readonly Camera[]; onGroup: (group: string) => void }) {
  const { t } = useTranslation();
  const now = useNowBy(STANDING_STEP_MS);
  const ongoing = cameras.filter((camera) => camera.open_event).length;
  const troubled = useMemo(() => cameras.filter((camera) => isTroubled(camera, now)).length, [cameras, now]);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Badge className="text-quiet">{t("wall.cameras", { count: cameras.length })}</Badge>
      {ongoing > 0 && (
        <button type="button" className="flex rounded-full" onClick={() => onGroup("ongoing")}>
          <Badge className="border-live/40 text-live">{t("wall.ongoing", { count: ongoing })}</Badge>
        </button>
      )}
      {troubled > 0 && (
        <button type="button" className="flex rounded-full" onClick={() => onGroup("troubled")}>
          <Badge className="border-severity-2/40 text-severity-2">{t("wall.troubled", { count: troubled })}</Badge>
        </button>
      )}
    </div>
  );
}

function LatestEvents() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useEvents(ALL_EVENTS);
  return (
    <section aria-labelledby="latest-title">
      <div className="mb-2 flex h-7 items-center justify-between">
        <h2 id="latest-title" className="font-semibold">
          {t("wall.latestEvents")}
        </h2>
        <Link to="/events" className="rounded text-accent text-sm underline-offset-4 hover:underline">
          {t("wall.allEvents")}
        </Link>
      </div>
      {error && !data && <ProblemNotice error={error} onRetry={() => void refetch()} />}
      {data?.events.length === 0 && (
        <p className="rounded-xl border border-dashed px-4 py-8 text-center text-quiet text-sm">
          {t("events.emptyLead")}
        </p>
      )}
      <ul className="grid grid-cols-1 gap-3 sm:grid-cols-2 xl:grid-cols-1" aria-busy={isPending}>
        {isPending &&
          SKELETONS.map((name) => (
            <li key={name}>
              <EventCardSkeleton small />
            </li>
          ))}
        {data?.events.slice(0, LATEST_SHOWN).map((event) => (
          <li key={event.event_uuid}>
            <EventCard event={event} small />
          </li>
        ))}
      </ul>
    </section>
  );
}
