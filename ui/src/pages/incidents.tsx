import { CheckCheck, FilterX, RotateCcw, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { framePicture } from "@/api/addresses";
import { useIncidentCounts, useIncidents, useReview } from "@/api/incidents";
import { asProblem } from "@/api/problem";
import { useSession } from "@/api/queries";
import type { Incident } from "@/api/types";
import { KeepKeys } from "@/components/add-to-case";
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
import { askedIncidents, atLeast, fitsReview, REVIEW_VIEWS } from "@/display/incident-filter";
import { dayOf, durationText, shortMoment } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { CAME_TO, useCameTo, useListKeys } from "@/hooks/use-list-keys";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { useSeverityText } from "@/hooks/use-severity-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/incidents";
import { FROM_LIST } from "@/shell/last-list";
import { tell } from "@/shell/notices";

const useWords = addWords("incidents", words);
const SKELETONS = ["a", "b", "c", "d", "e", "f"];
const LIST = "grid grid-cols-1 gap-3 xl:grid-cols-2";

export function IncidentsPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { address, clear } = useAddress();
  const filter = useMemo(() => askedIncidents(address), [address]);
  const query = useIncidents(filter);
  const pages = query.data?.pages.flatMap((page) => page.incidents);
  // What was just reviewed leaves the list at once, and comes back when that is undone.
  const incidents = pages?.filter((one) => fitsReview(one, filter));
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} />
      <Filters />
      <Loaded query={{ ...query, data: incidents }} waiting={<Waiting />}>
        {(found) =>
          found.length === 0 && !query.hasNextPage ? (
            <Nothing onClear={clear} />
          ) : (
            <List incidents={found} leaves={filter.reviewed !== undefined} />
          )
        }
      </Loaded>
      {incidents && incidents.length + Number(query.hasNextPage) > 0 && <More query={query} end={t("end")} />}
    </>
  );
}

function Filters() {
  const severityText = useSeverityText();
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
        label={t("view")}
        name="view"
        choices={REVIEW_VIEWS.map((view) => ({ value: view, text: t(view) }))}
      />
      <span aria-hidden="true" className="mb-1.5 hidden h-6 w-px bg-line sm:block" />
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
                {severityText(step)} {count(step)}
              </>
            ),
          })),
        ]}
      />
      <div className="flex flex-wrap items-end gap-2 max-sm:w-full max-sm:*:flex-1 xl:ml-auto">
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

const idOf = (incident: Incident) => incident.incident_uuid;
const pageOf = ({ last_event_uuid: uuid }: Incident) => uuid && `/events/${uuid}`;

interface ListProps {
  incidents: readonly Incident[];
  /** Whether one that is reviewed, or no longer is, goes out of the list. */
  leaves: boolean;
}

function List({ incidents, leaves }: ListProps) {
  const { t } = useWords();
  const { data: session } = useSession();
  const mayReview = session?.permissions.includes("review") ?? false;
  const review = useReviewing();
  const turn = (incident: Incident) => review(incident, incident.reviewed_at === null);
  const current = useListKeys({
    items: incidents,
    idOf,
    pageOf,
    mark: mayReview ? turn : null,
    leaves,
    names: { next: t("next"), previous: t("previous"), open: t("openOne"), mark: t("mark") },
  });
  return (
    <>
      <KeepKeys item={current?.last_event_uuid ? { kind: "event", uuid: current.last_event_uuid } : null} />
      <ul aria-label={t("list")} className={LIST}>
        {incidents.map((incident) => (
          <li key={incident.incident_uuid}>
            <IncidentCard
              incident={incident}
              chosen={incident === current}
              onReview={mayReview ? () => turn(incident) : null}
            />
          </li>
        ))}
      </ul>
    </>
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
  const ref = useCameTo<HTMLElement>(chosen);
  const title = eventTitle({ primary_event: incident.primary_event ?? "none", issue: incident.issue });
  const reviewed = incident.reviewed_at !== null;
  const time = shortMoment(incident.start_at, now, i18n.language);
  return (
    <article
      ref={ref}
      id={`incident-${incident.incident_uuid}`}
      aria-current={chosen ? "true" : undefined}
      className={cn(
        "group relative flex h-full overflow-hidden rounded-xl border border-l-4 bg-surface shadow-xs hover:shadow-md",
        CAME_TO,
        severityEdge(incident.severity_max),
        chosen && "ring-2 ring-accent",
      )}
    >
      <Still
        src={incident.best_frame_uuid ? framePicture(incident.best_frame_uuid, "infer") : null}
        alt={shared("event.picture", { camera: incident.camera_name, phrase: title, time })}
        none={shared("event.noPicture")}
        className="w-28 shrink-0 self-start sm:w-48"
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
        <h2 className="line-clamp-2 font-semibold text-sm">
          {incident.last_event_uuid ? (
            <Link
              to={`/events/${incident.last_event_uuid}`}
              state={FROM_LIST}
              className="after:absolute after:inset-0 focus-visible:outline-none"
            >
              {title}
            </Link>
          ) : (
            title
          )}
        </h2>
        <p className="flex flex-wrap gap-x-2 text-quiet text-xs">
          <span className="max-w-full truncate">{incident.camera_name}</span>
          <span className="whitespace-nowrap">
            <time dateTime={new Date(incident.start_at).toISOString()}>{time}</time> (<Age at={incident.start_at} />)
          </span>
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
          <div className="aspect-video w-28 animate-pulse self-start bg-raised sm:w-48" />
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
