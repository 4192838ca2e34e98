import { Clock, FilterX, Search as SearchIcon, SearchX, SlidersHorizontal, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "react-router";
import { useSession } from "@/api/queries";
import { type SearchFilter, useFacets, useSearch } from "@/api/search";
import type { FacetValue, FoundEvent, SearchFacets } from "@/api/types";
import { KeepKeys } from "@/components/add-to-case";
import { DayTimeline } from "@/components/day-timeline";
import { EmptyState } from "@/components/empty-state";
import { sentValues } from "@/components/entry-page";
import { EventCard, EventCardSkeleton } from "@/components/event-card";
import { Fold } from "@/components/fold";
import { Loaded } from "@/components/loaded";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { ProblemNotice } from "@/components/problem-notice";
import { ScoreThese } from "@/components/score-these";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { cn } from "@/components/ui/class-names";
import { DateField } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import {
  askedSearch,
  chosenMoment,
  chosenOf,
  leastSeverities,
  MANY,
  type ManyName,
  MOST,
  ratherFits,
  shownDay,
  shownZoom,
  TEXT_MAX_CHARS,
  toggled,
} from "@/display/search-filter";
import { dateAndTime } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { useEventKeys } from "@/hooks/use-event-keys";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { useSeverityText } from "@/hooks/use-severity-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/search";

const useWords = addWords("search", words);
const SKELETONS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(100%,15rem),1fr))] gap-4";
const VALUES_SHOWN = 6;
const FILTERS = [...MANY, "severity", "unknown", "text", "score", "from", "to", "at"] as const;

export function SearchPage() {
  const { t, i18n } = useWords();
  usePageTitle(t("title"));
  const { address, patch, clear } = useAddress();
  const { data: session } = useSession();
  const mayInvestigate = session?.permissions.includes("investigate") ?? false;
  const mayScore =
    (session?.permissions.includes("manage_deliveries") ?? false) && (session?.features.includes("scoring") ?? false);
  const filter = useMemo(() => askedSearch(address, mayInvestigate), [address, mayInvestigate]);
  const query = useSearch(filter);
  const found = query.data?.pages.flatMap((page) => page.events);
  const isCut = query.data?.pages.at(-1)?.is_cut ?? false;
  const at = chosenMoment(address);
  const isNarrowed = FILTERS.some((name) => address.has(name));
  return (
    <>
      <PageHead
        title={t("title")}
        actions={
          <>
            {isNarrowed && (
              <Button variant="ghost" size="small" onClick={clear}>
                <FilterX aria-hidden="true" />
                {t("clear")}
              </Button>
            )}
            {mayScore && <ScoreThese filter={filter} />}
          </>
        }
      />
      {mayInvestigate && <TextSearch key={address.get("text")} />}
      <div className="grid gap-5 lg:grid-cols-[14rem_minmax(0,1fr)] xl:grid-cols-[14rem_minmax(0,1fr)_13rem]">
        <Fold title={t("facets")} Icon={SlidersHorizontal} at="lg">
          <Facets filter={filter} />
        </Fold>
        <section aria-label={t("list")} className="min-w-0 xl:col-start-2 xl:row-start-1">
          {at !== null && (
            <p className="mb-3 flex flex-wrap items-center gap-2 text-sm">
              {t("until", { time: dateAndTime(at, i18n.language) })}
              <Button variant="outline" size="small" onClick={() => patch({ at: null, day: null })}>
                <X aria-hidden="true" />
                {t("toNow")}
              </Button>
            </p>
          )}
          {isCut && found && found.length > 0 && <p className="mb-3 text-quiet text-sm">{t("cut")}</p>}
          <Loaded query={{ ...query, data: found }} waiting={<Waiting />}>
            {(events) =>
              events.length > 0 ? (
                <Grid events={events} isOld={query.isPlaceholderData} />
              ) : query.hasNextPage ? (
                <p className="mt-4 text-center text-quiet text-sm">{t("partly")}</p>
              ) : (
                <EmptyState Icon={SearchX} title={t("emptyTitle")} lead={t(isCut ? "cut" : "emptyLead")}>
                  {isNarrowed && (
                    <Button variant="outline" onClick={clear}>
                      {t("clear")}
                    </Button>
                  )}
                </EmptyState>
              )
            }
          </Loaded>
          {found && found.length + Number(query.hasNextPage) > 0 && (
            <More query={query} {...(isCut ? {} : { end: t("end") })} />
          )}
        </section>
        <div className="max-xl:-order-1 max-xl:lg:col-span-2">
          <Fold title={t("timeline")} Icon={Clock} at="xl">
            <Day filter={filter} />
          </Fold>
        </div>
      </div>
    </>
  );
}

function TextSearch() {
  const { t } = useWords();
  const { address, patch } = useAddress();
  const input = useRef<HTMLInputElement>(null);
  const { key, state } = useLocation();
  // Whoever came by `/` goes on writing.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key changes with every coming
  useEffect(() => {
    if (state?.wantsWords) input.current?.focus();
  }, [key]);
  return (
    <form
      className="mb-4 flex max-w-xl gap-2"
      onSubmit={(event) => patch({ text: sentValues(event).text?.trim() ?? "" })}
    >
      <input
        ref={input}
        type="search"
        name="text"
        aria-label={t("text")}
        placeholder={t("text")}
        defaultValue={address.get("text") ?? ""}
        maxLength={TEXT_MAX_CHARS}
        className="h-10 min-w-0 flex-1 rounded-md border bg-ground px-3 text-base placeholder:text-quiet sm:text-sm"
      />
      <Button type="submit" variant="outline">
        <SearchIcon aria-hidden="true" />
        {t("find")}
      </Button>
    </form>
  );
}

/** By the keys of the events' list, too. */
function Grid({ events, isOld }: { events: readonly FoundEvent[]; isOld: boolean }) {
  const current = useEventKeys(events);
  return (
    <>
      <KeepKeys item={current ? { kind: "event", uuid: current.event_uuid } : null} />
      <ul className={cn(GRID, isOld && "opacity-60")}>
        {events.map((event) => (
          <li key={event.event_uuid}>
            <Found event={event} chosen={event === current} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Found({ event, chosen }: { event: FoundEvent; chosen: boolean }) {
  const { t } = useWords();
  return (
    <div className="flex h-full flex-col">
      <div className="flex-1">
        <EventCard event={event} chosen={chosen} />
      </div>
      {event.passages.map((passage) => (
        <p key={`${passage.kind} ${passage.excerpt}`} className="mt-1 rounded-md bg-raised px-2 py-1 text-xs">
          <span className="text-quiet">{t(passage.kind)}: </span>
          {passage.excerpt}
        </p>
      ))}
    </div>
  );
}

function Day({ filter }: { filter: SearchFilter }) {
  const { address, patch } = useAddress();
  const now = useNowBy(60_000);
  const [cameras, sites] = [filter.camera_id, filter.site];
  return (
    <DayTimeline
      day={shownDay(address, now)}
      onDay={(day) => patch({ day })}
      zoom={shownZoom(address)}
      onZoom={(zoom) => patch({ zoom: zoom === "1h" ? null : zoom })}
      at={chosenMoment(address)}
      onAt={(at) => patch({ at: String(at), to: null })}
      {...(cameras ? { cameraIds: cameras } : {})}
      {...(sites ? { sites } : {})}
    />
  );
}

function Facets({ filter }: { filter: SearchFilter }) {
  const { t } = useWords();
  const { address, patch } = useAddress();
  const query = useFacets(filter);
  if (query.error && !query.data) return <ProblemNotice error={query.error} onRetry={() => void query.refetch()} />;
  const facets = query.data;
  return (
    <div className="grid content-start gap-4" aria-busy={query.isPending}>
      <p className="text-quiet text-xs tabular-nums">
        {facets &&
          (facets.is_complete
            ? t("counted", { count: facets.counted })
            : t("countedNewest", { count: facets.counted }))}
      </p>
      <div className="grid grid-cols-2 gap-2 lg:grid-cols-1">
        <DateField
          label={t("from")}
          value={address.get("from") ?? ""}
          max={address.get("to") ?? undefined}
          onChange={(event) => patch({ from: event.target.value, at: null })}
        />
        <DateField
          label={t("to")}
          value={address.get("to") ?? ""}
          min={address.get("from") ?? undefined}
          onChange={(event) => patch({ to: event.target.value, at: null })}
        />
      </div>
      {facets ? <Groups facets={facets} /> : <Skeleton className="h-96 w-full" />}
    </div>
  );
}

function Groups({ facets }: { facets: SearchFacets }) {
  const { t } = useWords();
  const severityText = useSeverityText();
  const { address, patch } = useAddress();
  const severities = leastSeverities(facets.severities, address.getAll("severity"));
  const scores = chosenOf(address, "score");
  return (
    <>
      <Facet
        name={t("severity")}
        values={severities.map((one) => {
          const word = severityText(Number(one.value));
          return { ...one, label_ja: word, label_en: word };
        })}
        chosen={address.getAll("severity")}
        onToggle={(value) => patch({ severity: address.get("severity") === value ? null : value })}
      />
      <Many name="kind" title={t("kinds")} values={facets.primary_events} />
      <Many name="camera" title={t("cameras")} values={facets.cameras} />
      {(facets.sites.length > 1 || address.has("site")) && (
        <Many name="site" title={t("sites")} values={facets.sites} />
      )}
      <Many name="tag" title={t("tags")} values={facets.tags} />
      <Facet
        name={t("scores")}
        values={facets.scores.map((one) => ({ ...one, value: ratherFits(one.value) }))}
        chosen={scores}
        most={MOST.score}
        onToggle={(value) => patch({ score: toggled(scores, value, MOST.score) })}
      />
      <Facet
        name={t("days")}
        values={facets.days}
        chosen={address.get("from") === address.get("to") ? address.getAll("from") : []}
        onToggle={(day) =>
          patch(address.get("from") === day ? { from: null, to: null } : { from: day, to: day, at: null, day })
        }
      />
      {facets.unknown.some((one) => one.value === "true") && (
        <Facet
          name={t("unknown")}
          values={facets.unknown
            .filter((one) => one.value === "true")
            .map((one) => ({ ...one, label_ja: t("unknownOnly"), label_en: t("unknownOnly") }))}
          chosen={address.getAll("unknown")}
          onToggle={() => patch({ unknown: address.has("unknown") ? null : "true" })}
        />
      )}
    </>
  );
}

function Many({ name, title, values }: { name: ManyName; title: string; values: readonly FacetValue[] }) {
  const { address, patch } = useAddress();
  const chosen = chosenOf(address, name);
  return (
    <Facet
      name={title}
      values={values}
      chosen={chosen}
      most={MOST[name]}
      onToggle={(value) => patch({ [name]: toggled(chosen, value, MOST[name]) })}
    />
  );
}

interface FacetProps {
  name: string;
  values: readonly FacetValue[];
  chosen: readonly string[];
  /** So many can be chosen at once. */
  most?: number;
  onToggle: (value: string) => void;
}

function Facet({ name, values, chosen, most, onToggle }: FacetProps) {
  const { t, i18n } = useWords();
  const [all, setAll] = useState(false);
  const isFull = most !== undefined && chosen.length >= most;
  // What was chosen stays to be taken away, also when nothing of it is found any more.
  const missing = chosen
    .filter((value) => !values.some((one) => one.value === value))
    .map((value) => ({ value, label_ja: value, label_en: value, count: 0 }));
  const listed = [...missing, ...values];
  if (listed.length === 0) return null;
  const shown = all ? listed : listed.filter((one, place) => place < VALUES_SHOWN || chosen.includes(one.value));
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1 font-medium text-sm">{name}</legend>
      <div className="flex flex-wrap gap-1.5 lg:grid lg:gap-0.5">
        {shown.map((one) => {
          const on = chosen.includes(one.value);
          return (
            <button
              key={one.value}
              type="button"
              aria-pressed={on}
              disabled={isFull && !on}
              onClick={() => onToggle(one.value)}
              className={cn(
                "flex min-w-0 max-w-full items-center justify-between gap-2 rounded-md px-2 py-1 text-left text-sm disabled:opacity-60 max-lg:border",
                on ? "bg-accent-soft text-text" : "text-quiet enabled:hover:bg-raised enabled:hover:text-text",
              )}
            >
              <span className="truncate">{i18n.language === "en" ? one.label_en : one.label_ja}</span>
              <Badge className="border-0 px-0 text-inherit tabular-nums">{one.count}</Badge>
            </button>
          );
        })}
      </div>
      {isFull && <p className="mt-1 px-2 text-quiet text-xs">{t("full", { count: most })}</p>}
      {listed.length > VALUES_SHOWN && (
        <Button variant="ghost" size="small" className="mt-1 px-2 text-quiet" onClick={() => setAll(!all)}>
          {t(all ? "less" : "more")}
        </Button>
      )}
    </fieldset>
  );
}

function Waiting() {
  return (
    <ul aria-busy="true" className={GRID}>
      {SKELETONS.map((name) => (
        <li key={name}>
          <EventCardSkeleton />
        </li>
      ))}
    </ul>
  );
}
