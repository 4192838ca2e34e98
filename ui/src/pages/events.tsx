import { BellOff, Clock, FilterX, SearchX, SlidersHorizontal, X } from "lucide-react";
import { Suspense, useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link, useSearchParams } from "react-router";
import { useCameras, useEvents } from "@/api/queries";
import type { Event } from "@/api/types";
import { KeepKeys } from "@/components/add-to-case";
import { EmptyState } from "@/components/empty-state";
import { EventCard, EventCardSkeleton } from "@/components/event-card";
import { Fold } from "@/components/fold";
import { ProblemNotice, StaleNotice } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { DateField, SelectField } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import {
  askedFilter,
  type ChosenFilter,
  type FilterName,
  ISSUE_TAGS,
  readFilter,
  writeFilter,
} from "@/display/event-filter";
import { chosenMoment, shownDay, shownZoom } from "@/display/search-filter";
import { dateAndTime } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { useEventKeys } from "@/hooks/use-event-keys";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { useSeen } from "@/hooks/use-seen";
import { useSeverityText } from "@/hooks/use-severity-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/eventlist";
import { later } from "@/shell/later";

const useWords = addWords("eventlist", words);
const DayTimeline = later(() => import("@/components/day-timeline"), "DayTimeline");

const SKELETONS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(100%,16rem),1fr))] gap-4";

export function EventsPage() {
  const { t } = useTranslation();
  usePageTitle(t("events.title"));
  const [address, setAddress] = useSearchParams();
  const chosen = useMemo(() => readFilter(address), [address]);
  const filter = useMemo(() => askedFilter(chosen), [chosen]);
  const query = useEvents(filter);
  const choose = (name: FilterName, value: string) =>
    setAddress((now) => writeFilter(now, name, value), { replace: true });
  const clear = () => setAddress({}, { replace: true });
  const retry = () => void query.refetch();
  const filtered = Object.keys(chosen).length > 0;
  const events = query.data?.events;
  return (
    <>
      <h1 className="mb-3 font-semibold text-xl">{t("events.title")}</h1>
      <Fold title={t("events.filter")} Icon={SlidersHorizontal} at="lg" used={filtered}>
        <Filters chosen={chosen} onChoose={choose} onClear={filtered ? clear : null} />
      </Fold>
      <div className="mt-3 grid gap-5 lg:mt-0 lg:grid-cols-[minmax(0,1fr)_13.5rem]">
        <section aria-label={t("events.list")} className="min-w-0 max-lg:order-last">
          <Moment />
          {query.error && events && <StaleNotice error={query.error} onRetry={retry} at={query.dataUpdatedAt} />}
          {query.error && !events && <ProblemNotice error={query.error} onRetry={retry} />}
          {events?.length === 0 && (filtered ? <NothingMatches onClear={clear} /> : <NoEvents />)}
          {query.isPending && !query.error && <Waiting />}
          {events && events.length > 0 && <Grid events={events} isOld={query.isPlaceholderData} />}
          {events && events.length > 0 && <Older query={query} />}
        </section>
        <Day cameraId={chosen.camera ?? null} />
      </div>
    </>
  );
}

/** The moment that was gone to, and the way back to now. */
function Moment() {
  const { t, i18n } = useWords();
  const { address, patch } = useAddress();
  const at = chosenMoment(address);
  if (at === null) return null;
  return (
    <p className="mb-3 flex flex-wrap items-center gap-2 text-sm">
      {t("until", { time: dateAndTime(at, i18n.language) })}
      <Button variant="outline" size="small" onClick={() => patch({ at: null, day: null })}>
        <X aria-hidden="true" />
        {t("toNow")}
      </Button>
    </p>
  );
}

/** A day beside the list: the day and the time are two clicks. */
function Day({ cameraId }: { cameraId: string | null }) {
  const { t } = useWords();
  const { address, patch } = useAddress();
  const now = useNowBy(60_000);
  const cameraIds = useMemo(() => (cameraId ? [cameraId] : []), [cameraId]);
  return (
    <div className="lg:sticky lg:top-[4.75rem] lg:self-start">
      <Fold title={t("timeline")} Icon={Clock} at="lg">
        <Suspense fallback={<Skeleton className="h-[36rem] w-full" />}>
          <DayTimeline
            day={shownDay(address, now)}
            onDay={(day) => patch({ day })}
            zoom={shownZoom(address)}
            onZoom={(zoom) => patch({ zoom: zoom === "1h" ? null : zoom })}
            at={chosenMoment(address)}
            onAt={(at) => patch({ at: String(at), to: null })}
            cameraIds={cameraIds}
          />
        </Suspense>
      </Fold>
    </div>
  );
}

/** J and K go through the list, O opens, R marks as reviewed, B bookmarks, C puts into a case. */
function Grid({ events, isOld }: { events: readonly Event[]; isOld: boolean }) {
  const { t } = useTranslation();
  const current = useEventKeys(events);
  return (
    <>
      <KeepKeys item={current ? { kind: "event", uuid: current.event_uuid } : null} />
      <ul className={GRID} aria-label={t("events.list")}>
        {events.map((event) => (
          <li key={event.event_uuid} className={isOld ? "opacity-60" : undefined}>
            <EventCard event={event} chosen={event === current} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Waiting() {
  return (
    <ul className={GRID} aria-busy="true">
      {SKELETONS.map((name) => (
        <Item key={name} />
      ))}
    </ul>
  );
}

const Item = () => (
  <li>
    <EventCardSkeleton />
  </li>
);

function Older({ query }: { query: ReturnType<typeof useEvents> }) {
  const { t } = useTranslation();
  const { fetchOlder, isFetchingOlder, olderProblem, isPlaceholderData } = query;
  const more = Boolean(query.data?.nextBefore);
  const onSeen = useCallback(() => void fetchOlder(), [fetchOlder]);
  const end = useSeen<HTMLDivElement>(onSeen, more && !isFetchingOlder && !olderProblem && !isPlaceholderData);
  if (olderProblem) {
    return (
      <div className="mt-6">
        <ProblemNotice error={olderProblem} onRetry={onSeen} />
      </div>
    );
  }
  if (!more) return <p className="py-8 text-center text-quiet text-sm">{t("events.end")}</p>;
  return (
    <div ref={end} className="grid place-items-center py-8">
      <Button variant="outline" disabled={isFetchingOlder} onClick={onSeen}>
        {t("action.loadOlder")}
      </Button>
    </div>
  );
}

interface FiltersProps {
  chosen: ChosenFilter;
  onChoose: (name: FilterName, value: string) => void;
  onClear: (() => void) | null;
}

function Filters({ chosen, onChoose, onClear }: FiltersProps) {
  const severityText = useSeverityText();
  const { t } = useTranslation();
  const { primaryEvents, tags, eventPhrase, tagLabel } = usePhrases();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const kinds = primaryEvents.filter((one) => one.id !== "none");
  const bind = (name: FilterName) => ({
    value: chosen[name] ?? "",
    onChange: (event: { target: { value: string } }) => onChoose(name, event.target.value),
  });
  return (
    <search
      aria-label={t("events.filter")}
      className="mb-5 grid grid-cols-2 items-end gap-3 sm:grid-cols-3 lg:flex lg:flex-wrap"
    >
      <SelectField label={t("events.camera")} {...bind("camera")} className="lg:w-48">
        <option value="">{t("events.any")}</option>
        {/* A camera that was removed still has its events. */}
        {chosen.camera && !cameras.some((one) => one.camera_id === chosen.camera) && <option>{chosen.camera}</option>}
        {cameras.map((camera) => (
          <option key={camera.camera_id} value={camera.camera_id}>
            {camera.name}
          </option>
        ))}
      </SelectField>
      <SelectField label={t("events.kind")} {...bind("kind")} className="lg:w-44">
        <option value="">{t("events.any")}</option>
        {kinds.map((kind) => (
          <option key={kind.id} value={kind.id}>
            {eventPhrase(kind.id)}
          </option>
        ))}
        {tags
          .filter((tag) => ISSUE_TAGS.includes(tag.id))
          .map((tag) => (
            <option key={tag.id} value={tag.id}>
              {tagLabel(tag)}
            </option>
          ))}
      </SelectField>
      <SelectField label={t("events.severity")} {...bind("severity")} className="lg:w-40">
        <option value="">{t("events.any")}</option>
        {([1, 2, 3] as const).map((step) => (
          <option key={step} value={step}>
            {severityText(step)}
          </option>
        ))}
      </SelectField>
      <SelectField label={t("events.state")} {...bind("state")} className="lg:w-32">
        <option value="">{t("events.any")}</option>
        <option value="open">{t("event.ongoing")}</option>
        <option value="closed">{t("event.closed")}</option>
      </SelectField>
      <DateField label={t("events.from")} {...bind("from")} max={chosen.to} className="lg:w-40" />
      <DateField label={t("events.to")} {...bind("to")} min={chosen.from} className="lg:w-40" />
      {onClear && (
        <Button variant="ghost" size="small" className="col-span-full h-9 lg:col-auto" onClick={onClear}>
          <FilterX aria-hidden="true" />
          {t("events.clear")}
        </Button>
      )}
    </search>
  );
}

function NoEvents() {
  const { t } = useTranslation();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras);
  const hasNone = cameras?.length === 0;
  return (
    <EmptyState
      Icon={BellOff}
      title={t("events.emptyTitle")}
      lead={t(hasNone ? "events.emptyNoCameras" : "events.emptyLead")}
    >
      <Button asChild variant="outline">
        <Link to="/">{t("events.emptyToWall")}</Link>
      </Button>
    </EmptyState>
  );
}

function NothingMatches({ onClear }: { onClear: () => void }) {
  const { t } = useTranslation();
  return (
    <EmptyState Icon={SearchX} title={t("events.emptyFilteredTitle")} lead={t("events.emptyFilteredLead")}>
      <Button variant="outline" onClick={onClear}>
        {t("events.clear")}
      </Button>
    </EmptyState>
  );
}
