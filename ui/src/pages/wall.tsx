import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useCameras, useEvents } from "@/api/queries";
import type { Camera } from "@/api/types";
import { CameraTile, CameraTileSkeleton } from "@/components/camera-tile";
import { EventCard, EventCardSkeleton } from "@/components/event-card";
import { FirstRun } from "@/components/first-run";
import { ProblemNotice, StaleNotice } from "@/components/problem-notice";
import { Badge } from "@/components/ui/badge";
import { isWell, standingOf } from "@/display/camera-standing";
import { useNow } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { useSeen } from "@/hooks/use-seen";
import { SuggestPane } from "@/live/suggest-pane";

const SKELETONS = ["a", "b", "c", "d"];
const LATEST_SHOWN = 8;
const ALL_EVENTS = {};

export function WallPage() {
  const { t } = useTranslation();
  usePageTitle(t("wall.title"));
  const query = useCameras();
  const cameras = query.data?.pages.flatMap((page) => page.cameras);
  const retry = useCallback(() => void query.refetch(), [query.refetch]);
  return (
    <div className="grid gap-6 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <section aria-labelledby="wall-title">
        <div className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 id="wall-title" className="font-semibold text-xl">
            {t("wall.title")}
          </h1>
          {cameras && cameras.length > 0 && <Summary cameras={cameras} />}
        </div>
        {query.error && cameras && <StaleNotice error={query.error} onRetry={retry} at={query.dataUpdatedAt} />}
        {query.error && !cameras && <ProblemNotice error={query.error} onRetry={retry} />}
        {query.isPending && !query.error && <Tiles cameras={null} />}
        {cameras?.length === 0 && <FirstRun />}
        {cameras && cameras.length > 0 && <Tiles cameras={cameras} />}
        <MoreCameras wanted={query.hasNextPage && !query.isFetching} onSeen={query.fetchNextPage} />
      </section>
      <div className="grid content-start gap-6">
        <SuggestPane />
        <LatestEvents />
      </div>
    </div>
  );
}

function Tiles({ cameras }: { cameras: readonly Camera[] | null }) {
  return (
    <ul className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,22rem),1fr))] gap-4" aria-busy={cameras === null}>
      {cameras
        ? cameras.map((camera) => (
            <li key={camera.camera_id}>
              <CameraTile camera={camera} />
            </li>
          ))
        : SKELETONS.map((name) => (
            <li key={name}>
              <CameraTileSkeleton />
            </li>
          ))}
    </ul>
  );
}

function Summary({ cameras }: { cameras: readonly Camera[] }) {
  const { t } = useTranslation();
  const now = useNow();
  const ongoing = cameras.filter((camera) => camera.open_event).length;
  const troubled = cameras.filter((camera) => !isWell(standingOf(camera, now))).length;
  return (
    <div className="flex flex-wrap gap-2">
      <Badge className="text-quiet">{t("wall.cameras", { count: cameras.length })}</Badge>
      {ongoing > 0 && <Badge className="border-live/40 text-live">{t("wall.ongoing", { count: ongoing })}</Badge>}
      {troubled > 0 && (
        <Badge className="border-severity-2/40 text-severity-2">{t("wall.troubled", { count: troubled })}</Badge>
      )}
    </div>
  );
}

function MoreCameras({ wanted, onSeen }: { wanted: boolean; onSeen: () => unknown }) {
  const ref = useSeen<HTMLDivElement>(onSeen, wanted);
  return wanted ? <div ref={ref} aria-hidden="true" className="h-4" /> : null;
}

function LatestEvents() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useEvents(ALL_EVENTS);
  return (
    <section aria-labelledby="latest-title">
      <div className="mb-4 flex h-7 items-center justify-between">
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
      <ul className="grid gap-3 sm:grid-cols-2 xl:grid-cols-1" aria-busy={isPending}>
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
