import {
  ArrowLeft,
  CheckCheck,
  ChevronDown,
  ChevronLeft,
  ChevronRight,
  ChevronUp,
  Play,
  RotateCcw,
  SearchX,
} from "lucide-react";
import { type ReactNode, Suspense, useCallback, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation, useNavigate, useParams, useSearchParams } from "react-router";
import { asProblem } from "@/api/problem";
import { useEvent, useEventFrames, useSession } from "@/api/queries";
import type { EventDetail, Frame, Tag } from "@/api/types";
import { AddToCase } from "@/components/add-to-case";
import { Age } from "@/components/age";
import { BoxedPicture } from "@/components/boxed-picture";
import { EmptyState } from "@/components/empty-state";
import { EventClip } from "@/components/event-clip";
import { EventOpinion } from "@/components/event-opinion";
import { EventScores } from "@/components/event-scores";
import { FrameStrip } from "@/components/frame-strip";
import { OngoingBadge } from "@/components/ongoing-badge";
import { ProblemNotice, StaleNotice } from "@/components/problem-notice";
import { SeverityBadge } from "@/components/severity-badge";
import { ShareEvent } from "@/components/share-event";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { Switch } from "@/components/ui/switch";
import { keep, readKept } from "@/display/kept";
import { besideOf } from "@/display/list-place";
import { clockTime, dateAndTime, durationText } from "@/display/times";
import { useEventReview } from "@/hooks/use-event-review";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/eventlist";
import { liveTarget } from "@/live/addresses";
import { useShortcuts } from "@/shell/keyboard";
import { BACK_TO_LIST, FROM_LIST, listAround } from "@/shell/last-list";
import { later } from "@/shell/later";

const useWords = addWords("eventlist", words);
const EventDeliveries = later(() => import("@/components/event-deliveries"), "default");

export function EventPage() {
  const { uuid = "" } = useParams();
  const { t } = useTranslation();
  const { eventTitle } = usePhrases();
  const query = useEvent(uuid);
  const event = query.data;
  usePageTitle(event ? `${eventTitle(event)} · ${event.camera_name}` : t("event.title"));
  const retry = () => void query.refetch();
  if (query.error && asProblem(query.error).status === 404) return <NoEvent />;
  return (
    <>
      <Around key={`around ${uuid}`} page={`/events/${uuid}`} />
      {query.error && event && <StaleNotice error={query.error} onRetry={retry} at={query.dataUpdatedAt} />}
      {query.error && !event && <ProblemNotice error={query.error} onRetry={retry} />}
      {query.isPending && !query.error && <EventSkeleton />}
      {event && <EventView key={event.event_uuid} event={event} />}
    </>
  );
}

/** The way back to the list that somebody came from, and on to what is beside this event there; J and K, too. */
function Around({ page }: { page: string }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const navigate = useNavigate();
  const { state } = useLocation();
  const [list] = useState(() => listAround(page, state));
  const { previous, next } = besideOf(list?.pages ?? [], page);
  const go = (to: string | null) => to !== null && void navigate(to, { state: FROM_LIST, replace: true });
  useShortcuts(
    list
      ? [
          { key: "j", name: t("next"), when: () => next !== null, run: () => go(next) },
          { key: "k", name: t("previous"), when: () => previous !== null, run: () => go(previous) },
        ]
      : [],
  );
  return (
    <div className="mb-2 flex h-8 items-center justify-between gap-3">
      <Link
        to={list?.address ?? "/events"}
        state={list ? BACK_TO_LIST : undefined}
        className="inline-flex items-center gap-1 rounded text-quiet text-sm hover:text-text"
      >
        <ArrowLeft aria-hidden="true" className="size-4" />
        {list ? t("toList") : shared("event.toList")}
      </Link>
      {list && (
        <div className="flex gap-1">
          <Button
            variant="ghost"
            size="small"
            disabled={previous === null}
            title={`${t("previous")} (K)`}
            aria-label={t("previous")}
            onClick={() => go(previous)}
          >
            <ChevronUp aria-hidden="true" />
          </Button>
          <Button
            variant="ghost"
            size="small"
            disabled={next === null}
            title={`${t("next")} (J)`}
            aria-label={t("next")}
            onClick={() => go(next)}
          >
            <ChevronDown aria-hidden="true" />
          </Button>
        </div>
      )}
    </div>
  );
}

function EventView({ event }: { event: EventDetail }) {
  const { t } = useTranslation();
  const { t: own } = useWords();
  const { eventTitle } = usePhrases();
  const [address, setAddress] = useSearchParams();
  const { data: session } = useSession();
  const query = useEventFrames(event.event_uuid);
  const frames = query.data?.pages.flatMap((page) => page.frames) ?? [];
  const wanted = address.get("frame");
  const chosen = frames.find((frame) => frame.frame_uuid === wanted) ?? event.best_frame ?? frames[0];
  const { state } = useLocation();
  const choose = (frameUuid: string) => setAddress({ frame: frameUuid }, { replace: true, state });
  const more = useCallback(() => void query.fetchNextPage(), [query.fetchNextPage]);
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center gap-2">
        <h1 className="mr-1 font-semibold text-xl">{eventTitle(event)}</h1>
        <SeverityBadge severity={event.severity_max} />
        {event.state === "open" && <OngoingBadge />}
        {isReviewed(event) && (
          <Badge className="text-quiet">
            <CheckCheck aria-hidden="true" />
            {own("done")}
          </Badge>
        )}
        <div className="ml-auto flex flex-wrap items-center gap-2">
          <Button asChild variant="outline" size="small">
            <Link to={liveTarget(address.toString(), event.camera_id)}>
              <Play aria-hidden="true" />
              {t("live.watch")}
            </Link>
          </Button>
          <ReviewButton event={event} />
          {session?.permissions.includes("investigate") && (
            <AddToCase item={{ kind: "event", uuid: event.event_uuid }} />
          )}
          {session?.may_share && <ShareEvent uuid={event.event_uuid} />}
        </div>
      </div>
      <div className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_20rem]">
        <div className="grid min-w-0 content-start gap-3">
          {chosen && <Picture event={event} frame={chosen} frames={frames} onChoose={choose} />}
          {!chosen && query.isPending && <PictureSkeleton />}
          {/* A camera may fail before it ever gave a picture. */}
          {!chosen && !query.isPending && <Still src={null} alt="" none={t("event.noPicture")} />}
          {query.error && <ProblemNotice error={query.error} onRetry={() => void query.refetch()} />}
          <FrameStrip
            frames={frames}
            chosen={chosen?.frame_uuid}
            onChoose={choose}
            hasMore={query.hasNextPage && !query.isFetching}
            onMore={more}
          />
          <EventClip event={event} />
        </div>
        <aside className="grid content-start gap-4">
          <Facts event={event} />
          <Tags tags={event.tags} />
          <EventOpinion event={event} />
          <EventScores event={event} />
          {session?.permissions.includes("manage_deliveries") && (
            <Suspense fallback={<Skeleton className="h-28 w-full rounded-xl" />}>
              <EventDeliveries eventUuid={event.event_uuid} />
            </Suspense>
          )}
        </aside>
      </div>
    </>
  );
}

const isReviewed = (event: EventDetail) => (event.incident?.reviewed_at ?? null) !== null;

/** What an event belongs to is reviewed as a whole; R does the same. */
function ReviewButton({ event }: { event: EventDetail }) {
  const { t } = useWords();
  const review = useEventReview();
  const mayReview = review !== null && event.incident_uuid !== null;
  const reviewed = isReviewed(event);
  const turn = () => review?.(event, !reviewed);
  const name = t(reviewed ? "unmark" : "mark");
  useShortcuts(mayReview ? [{ key: "r", name, run: turn }] : []);
  if (!mayReview) return null;
  return (
    <Button variant="outline" size="small" onClick={turn}>
      {reviewed ? <RotateCcw aria-hidden="true" /> : <CheckCheck aria-hidden="true" />}
      {name}
    </Button>
  );
}

interface PictureProps {
  event: EventDetail;
  frame: Frame;
  frames: readonly Frame[];
  onChoose: (frameUuid: string) => void;
}

function Picture({ event, frame, frames, onChoose }: PictureProps) {
  const { t, i18n } = useTranslation();
  const { eventTitle } = usePhrases();
  const [boxes, setBoxes] = useState(() => readKept("boxes") !== "off");
  const place = frames.findIndex((one) => one.frame_uuid === frame.frame_uuid);
  const beside = (by: number) => (place < 0 ? undefined : frames[place + by]);
  const time = dateAndTime(frame.captured_at, i18n.language);
  const alt = t("event.picture", { camera: event.camera_name, phrase: eventTitle(event), time });
  return (
    <>
      <BoxedPicture frame={frame} alt={alt} boxes={boxes} />
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="flex items-center gap-1">
          <Step label={t("event.previous")} to={beside(-1)} onChoose={onChoose} Icon={ChevronLeft} />
          <Step label={t("event.next")} to={beside(1)} onChoose={onChoose} Icon={ChevronRight} />
        </div>
        <p className="text-sm tabular-nums">
          {time} <span className="text-quiet">{frameNote(frame)}</span>
        </p>
        <div className="ml-auto">
          <Switch
            label={t("event.boxes")}
            checked={boxes}
            onCheckedChange={(on) => {
              setBoxes(on);
              keep("boxes", on ? "on" : "off");
            }}
          />
        </div>
      </div>
      {frame.warnings.length > 0 && (
        <div className="text-quiet text-sm">
          <h2 className="font-semibold">{t("event.warnings")}</h2>
          <ul className="list-disc pl-5">
            {frame.warnings.map((warning) => (
              <li key={warning} className="break-words">
                {warning}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );

  function frameNote(of: Frame): string {
    if (of.status !== "ok") return t("event.lookFailed");
    if (!of.analyzed) return t("event.notAnalyzed");
    return of.confidence === null ? "" : t("event.confidence", { percent: Math.round(of.confidence * 100) });
  }
}

interface StepProps {
  label: string;
  to: Frame | undefined;
  onChoose: (frameUuid: string) => void;
  Icon: typeof ChevronLeft;
}

function Step({ label, to, onChoose, Icon }: StepProps) {
  return (
    <Button
      variant="outline"
      size="icon"
      aria-label={label}
      disabled={!to}
      onClick={() => to && onChoose(to.frame_uuid)}
    >
      <Icon aria-hidden="true" />
    </Button>
  );
}

function Facts({ event }: { event: EventDetail }) {
  const { t, i18n } = useTranslation();
  const { tagLabel } = usePhrases();
  const language = i18n.language;
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{t("event.details")}</h2>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 text-sm">
        <Fact name={t("event.camera")}>
          <Link to={`/events?camera=${event.camera_id}`} className="text-accent underline-offset-4 hover:underline">
            {event.camera_name}
          </Link>
        </Fact>
        <Fact name={t("event.site")}>{event.site}</Fact>
        <Fact name={t("event.began")}>
          {dateAndTime(event.start_at, language)} (<Age at={event.start_at} className="whitespace-nowrap" />)
        </Fact>
        {event.end_at === null ? (
          <Fact name={t("event.lastSeen")}>{clockTime(event.last_seen_at, language)}</Fact>
        ) : (
          <Fact name={t("event.ended")}>{dateAndTime(event.end_at, language)}</Fact>
        )}
        <Fact name={t("event.duration")}>{durationText(event.last_seen_at - event.start_at)}</Fact>
        {event.cause && <Fact name={t("event.cause")}>{tagLabel(event.cause)}</Fact>}
        {/* What the analyzer says of the camera itself is no find, and has none. */}
        {!event.issue && event.confidence_max > 0 && (
          <Fact name={t("event.confidenceName")}>{Math.round(event.confidence_max * 100)}%</Fact>
        )}
        <Fact name={t(event.issue ? "event.looksCount" : "event.frameCount")}>{event.frame_count}</Fact>
      </dl>
    </Card>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-quiet">{name}</dt>
      <dd className="[overflow-wrap:anywhere] tabular-nums">{children}</dd>
    </>
  );
}

function Tags({ tags }: { tags: readonly Tag[] }) {
  const { t } = useTranslation();
  const { tagLabel } = usePhrases();
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{t("event.tags")}</h2>
      {tags.length === 0 && <p className="text-quiet text-sm">{t("event.noTags")}</p>}
      <ul className="flex flex-wrap gap-1.5">
        {tags.map((tag) => (
          <li key={tag.id}>
            <Badge title={tag.id} className="bg-raised">
              {tagLabel(tag)}
              {tag.group === "investigation_only" && (
                <span className="text-quiet">({t("event.investigationOnly")})</span>
              )}
            </Badge>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function NoEvent() {
  const { t } = useTranslation();
  return (
    <EmptyState page Icon={SearchX} title={t("event.notFoundTitle")} lead={t("event.notFoundLead")}>
      <Button asChild variant="outline">
        <Link to="/events">{t("event.toList")}</Link>
      </Button>
    </EmptyState>
  );
}

const PictureSkeleton = () => <Skeleton className="aspect-video w-full rounded-xl" />;

function EventSkeleton() {
  return (
    <div aria-busy="true" className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_20rem]">
      <div className="grid gap-3">
        <Skeleton className="h-7 w-56" />
        <PictureSkeleton />
        <Skeleton className="h-24 w-full" />
      </div>
      <Skeleton className="h-72 w-full rounded-xl" />
    </div>
  );
}
