import { CheckCheck, FilterX, RotateCcw, SearchX } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { framePicture } from "@/api/addresses";
import { useIncidentCounts, useIncidents, useReview } from "@/api/incidents";
import { asProblem } from "@/api/problem";
import { useSession } from "@/api/queries";
import type { Incident } from "@/api/types";
import { Age } from "@/components/age";
import { CameraSelect } from "@/components/camera-select";
import { EmptyState } from "@/components/empty-state";
import { Loaded } from "@/components/loaded";
import { More } from "@/components/more";
import { OngoingBadge } from "@/components/ongoing-badge";
import { PageHead } from "@/components/page-head";
import { SeverityBadge, severityEdge } from "@/components/severity-badge";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { cn } from "@/components/ui/class-names";
import { DateField } from "@/components/ui/field";
import { ChoiceTabs } from "@/components/ui/tabs";
import { askedIncidents, atLeast, REVIEW_VIEWS } from "@/display/incident-filter";
import { dayOf, durationText, shortMoment } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/incidents";
import { useShortcuts } from "@/shell/keyboard";
import { tell } from "@/shell/notices";

const useWords = addWords("incidents", words);
const SKELETONS = ["a", "b", "c", "d", "e", "f"];
const LIST = "grid gap-3 xl:grid-cols-2";

export function IncidentsPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { address, clear } = useAddress();
  const filter = useMemo(() => askedIncidents(address), [address]);
  const query = useIncidents(filter);
  const pages = query.data?.pages.flatMap((page) => page.incidents);
  // What was just reviewed leaves the list at once, and comes back when that is undone.
  const incidents = filter.reviewed === false ? pages?.filter((one) => one.reviewed_at === null) : pages;
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} />
      <Filters />
      <Loaded query={{ ...query, data: incidents }} waiting={<Waiting />}>
        {(found) =>
          found.length === 0 && !query.hasNextPage ? <Nothing onClear={clear} /> : <List incidents={found} />
        }
      </Loaded>
      {incidents && incidents.length + Number(query.hasNextPage) > 0 && <More query={query} end={t("end")} />}
    </>
  );
}

function Filters() {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const { address, patch, clear } = useAddress();
  const now = useNowBy(60_000);
  const counted = useMemo(() => {
    const { severity_min: _, ...rest } = askedIncidents(address);
    return rest;
  }, [address]);
  const { data: counts } = useIncidentCounts(counted);
  const count = (severity: number) => {
    if (!counts) return null;
    const more = counts.is_complete ? "" : "+";
    return (
      <span className="rounded-full bg-raised px-1.5 text-text text-xs tabular-nums">
        {atLeast(counts.by_severity, severity)}
        {more}
      </span>
    );
  };
  const isNarrowed = ["camera", "day", "severity"].some((name) => address.has(name));
  return (
    <search aria-label={shared("events.filter")} className="mb-4 flex flex-wrap items-end gap-x-4 gap-y-2">
      <ChoiceTabs
        label={t("severity")}
        name="severity"
        choices={[
          {
            value: "0",
            text: (
              <>
                {t("every")} {count(0)}
              </>
            ),
          },
          ...([3, 2, 1] as const).map((step) => ({
            value: String(step),
            text: (
              <>
                {step === 3
                  ? shared("severity.s3")
                  : shared("severity.atLeast", { name: shared(`severity.s${step}`) })}{" "}
                {count(step)}
              </>
            ),
          })),
        ]}
      />
      <ChoiceTabs
        label={t("view")}
        name="view"
        choices={REVIEW_VIEWS.map((view) => ({ value: view, text: t(view) }))}
      />
      <div className="flex flex-wrap items-end gap-2 max-sm:w-full max-sm:*:flex-1 lg:ml-auto">
        <CameraSelect
          value={address.get("camera") ?? ""}
          onChange={(camera) => patch({ camera })}
          className="sm:w-44"
        />
        <DateField
          label={t("day")}
          value={address.get("day") ?? ""}
          max={dayOf(now)}
          onChange={(event) => patch({ day: event.target.value })}
          className="sm:w-40"
        />
        {isNarrowed && (
          <Button variant="ghost" size="small" className="h-9" onClick={clear}>
            <FilterX aria-hidden="true" />
            {t("clear")}
          </Button>
        )}
      </div>
    </search>
  );
}

function List({ incidents }: { incidents: readonly Incident[] }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const { data: session } = useSession();
  const mayReview = session?.permissions.includes("review") ?? false;
  const review = useReviewing();
  const [chosen, setChosen] = useState<string | null>(null);
  const place = incidents.findIndex((one) => one.incident_uuid === chosen);
  const current = incidents[place];

  const step = (by: number) => {
    const next = incidents[Math.min(incidents.length - 1, Math.max(0, place < 0 ? 0 : place + by))];
    if (next) setChosen(next.incident_uuid);
  };
  const mark = () => {
    const one = current ?? incidents[0];
    if (!one || !mayReview) return;
    // The next one takes its place in the list.
    setChosen(incidents[place + 1]?.incident_uuid ?? incidents[place - 1]?.incident_uuid ?? null);
    review(one, one.reviewed_at === null);
  };
  useShortcuts([
    { key: "j", name: t("next"), run: () => step(1) },
    { key: "k", name: t("previous"), run: () => step(-1) },
    ...(mayReview ? [{ key: "r", name: t("mark"), run: mark }] : []),
    {
      key: "o",
      name: t("openOne"),
      run: () => current?.last_event_uuid && void navigate(`/events/${current.last_event_uuid}`),
    },
  ]);
  return (
    <ul aria-label={t("list")} className={LIST}>
      {incidents.map((incident) => (
        <li key={incident.incident_uuid}>
          <IncidentCard
            incident={incident}
            chosen={incident.incident_uuid === chosen}
            onReview={mayReview ? () => review(incident, incident.reviewed_at === null) : null}
          />
        </li>
      ))}
    </ul>
  );
}

/** Reviews, says so, and offers the way back. */
function useReviewing() {
  const { t } = useWords();
  const { mutateAsync } = useReview();
  return function review(incident: Incident, reviewed: boolean): void {
    const name = incident.camera_name;
    // Not by callbacks of the mutation: those are lost with the list, which goes when nothing is left to review.
    mutateAsync({ incident, reviewed }).then(
      () => tell({ text: t(reviewed ? "marked" : "unmarked", { name }), undo: () => review(incident, !reviewed) }),
      (error: unknown) => tell({ text: t("failed", { code: asProblem(error).code }), failed: true }),
    );
  };
}

interface CardProps {
  incident: Incident;
  chosen: boolean;
  onReview: (() => void) | null;
}

function IncidentCard({ incident, chosen, onReview }: CardProps) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const { eventTitle } = usePhrases();
  const now = useNowBy(60_000);
  const ref = useRef<HTMLElement>(null);
  const title = eventTitle({ primary_event: incident.primary_event ?? "none", issue: incident.issue });
  const reviewed = incident.reviewed_at !== null;
  const time = shortMoment(incident.start_at, now, i18n.language);
  useEffect(() => {
    if (!chosen) return;
    ref.current?.scrollIntoView?.({ block: "nearest" });
    ref.current?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  }, [chosen]);
  return (
    <article
      ref={ref}
      id={`incident-${incident.incident_uuid}`}
      aria-current={chosen ? "true" : undefined}
      className={cn(
        "group relative flex h-full overflow-hidden rounded-xl border border-l-4 bg-surface shadow-xs hover:shadow-md",
        severityEdge(incident.severity_max),
        chosen && "ring-2 ring-accent",
      )}
    >
      <Still
        src={incident.best_frame_uuid ? framePicture(incident.best_frame_uuid, "infer") : null}
        alt={shared("event.picture", { camera: incident.camera_name, phrase: title, time })}
        none={shared("event.noPicture")}
        className="w-32 shrink-0 self-start sm:w-48"
      />
      <div className="grid min-w-0 flex-1 content-start gap-1 px-3 py-2">
        <div className="flex flex-wrap items-center gap-1.5">
          <SeverityBadge severity={incident.severity_max} />
          {incident.is_ongoing && <OngoingBadge />}
          {reviewed && (
            <Badge className="text-quiet">
              <CheckCheck aria-hidden="true" />
              {t("done")}
            </Badge>
          )}
        </div>
        <h2 className="truncate font-semibold text-sm">
          {incident.last_event_uuid ? (
            <Link
              to={`/events/${incident.last_event_uuid}`}
              className="after:absolute after:inset-0 focus-visible:outline-none"
            >
              {title}
            </Link>
          ) : (
            title
          )}
        </h2>
        <p className="text-quiet text-xs">
          {incident.camera_name} · <time dateTime={new Date(incident.start_at).toISOString()}>{time}</time> (
          <Age at={incident.start_at} />)
        </p>
        <p className="text-quiet text-xs">
          {t("events", { count: incident.event_count })} · {durationText(incident.last_seen_at - incident.start_at)}
          {incident.reviewers > 0 && ` · ${t("reviewers", { count: incident.reviewers })}`}
        </p>
      </div>
      {onReview && (
        <Button
          variant="outline"
          size="icon"
          className="relative z-10 m-2 shrink-0 self-end"
          aria-label={`${t(reviewed ? "unmark" : "mark")}: ${title}, ${incident.camera_name}, ${time}`}
          title={t(reviewed ? "unmark" : "mark")}
          onClick={onReview}
        >
          {reviewed ? <RotateCcw aria-hidden="true" /> : <CheckCheck aria-hidden="true" />}
        </Button>
      )}
      <span
        aria-hidden="true"
        className="pointer-events-none absolute inset-0 rounded-xl group-has-[a:focus-visible]:outline-2 group-has-[a:focus-visible]:outline-focus group-has-[a:focus-visible]:-outline-offset-2"
      />
    </article>
  );
}

function Waiting() {
  return (
    <ul aria-busy="true" className={LIST}>
      {SKELETONS.map((name) => (
        <li key={name} className="flex h-24 overflow-hidden rounded-xl border border-l-4 bg-surface sm:h-28">
          <div className="aspect-video w-32 animate-pulse self-start bg-raised sm:w-48" />
          <div className="grid flex-1 content-center gap-2 p-3">
            <div className="h-4 w-1/3 animate-pulse rounded bg-raised" />
            <div className="h-4 w-1/2 animate-pulse rounded bg-raised" />
          </div>
        </li>
      ))}
    </ul>
  );
}

function Nothing({ onClear }: { onClear: () => void }) {
  const { t } = useWords();
  const { address, patch } = useAddress();
  const isNarrowed = [...address.keys()].some((name) => name !== "view");
  if (isNarrowed) {
    return (
      <EmptyState Icon={SearchX} title={t("emptyFilteredTitle")} lead={t("emptyFilteredLead")}>
        <Button variant="outline" onClick={onClear}>
          {t("clear")}
        </Button>
      </EmptyState>
    );
  }
  return (
    <EmptyState Icon={CheckCheck} title={t("emptyTitle")} lead={t("emptyLead")}>
      {!address.has("view") && (
        <Button variant="outline" onClick={() => patch({ view: "done" })}>
          {t("done")}
        </Button>
      )}
    </EmptyState>
  );
}
