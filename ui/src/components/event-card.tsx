import { memo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { framePicture } from "@/api/addresses";
import type { Event } from "@/api/types";
import { dateAndTime, shortMoment } from "@/display/times";
import { CAME_TO, useCameTo } from "@/hooks/use-list-keys";
import { useNowBy } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { FROM_LIST } from "@/shell/last-list";
import { Age } from "./age";
import { OngoingBadge } from "./ongoing-badge";
import { SeverityBadge, severityEdge } from "./severity-badge";
import { Still } from "./still";
import { cn } from "./ui/class-names";

const TAGS_SHOWN = 3;

/** Whether a moment was today is a matter of minutes; ages tick by themselves. */
const DAY_STEP_MS = 60_000;

interface Props {
  event: Event;
  /** A line below another heading, for a narrow column. */
  small?: boolean;
  /** Where somebody is in the list, by keys. */
  chosen?: boolean;
}

/** One event in a grid: picture, what, where, when. */
export const EventCard = memo(function EventCard({ event, small = false, chosen = false }: Props) {
  const { t, i18n } = useTranslation();
  const { eventTitle, tagLabel } = usePhrases();
  const now = useNowBy(DAY_STEP_MS);
  const ref = useCameTo<HTMLElement>(chosen);
  const phrase = eventTitle(event);
  const Heading = small ? "h3" : "h2";
  const began = dateAndTime(event.start_at, i18n.language);
  return (
    <article
      ref={ref}
      aria-current={chosen ? "true" : undefined}
      className={cn(
        "group relative h-full overflow-hidden rounded-xl border border-l-4 bg-surface shadow-xs transition-shadow hover:shadow-md",
        CAME_TO,
        small && "flex",
        severityEdge(event.severity_max),
        chosen && "ring-2 ring-accent",
      )}
    >
      <Still
        src={event.best_frame_uuid ? framePicture(event.best_frame_uuid, "infer") : null}
        alt={t("event.picture", { camera: event.camera_name, phrase, time: began })}
        none={t("event.noPicture")}
        {...(small ? { className: "aspect-auto w-28 shrink-0 self-stretch" } : {})}
      />
      <div className={cn("grid min-w-0 flex-1 content-start gap-1.5 p-3", small && "gap-1 px-3 py-1.5")}>
        <div className="flex flex-wrap items-center gap-1.5">
          <SeverityBadge severity={event.severity_max} />
          {event.state === "open" && <OngoingBadge />}
        </div>
        <Heading className="truncate font-semibold text-sm">
          <Link
            to={`/events/${event.event_uuid}`}
            state={small ? undefined : FROM_LIST}
            className="after:absolute after:inset-0 focus-visible:outline-none"
          >
            {phrase}
          </Link>
        </Heading>
        {/* A long name gives way to the time. */}
        <p className="flex min-w-0 text-quiet text-xs">
          <span className="min-w-0 truncate">{event.camera_name}</span>
          <span className="shrink-0 whitespace-pre">
            {" · "}
            <time dateTime={new Date(event.start_at).toISOString()}>
              {shortMoment(event.start_at, now, i18n.language)}
            </time>
            {!small && (
              <>
                {" "}
                (<Age at={event.start_at} />)
              </>
            )}
          </span>
        </p>
        {event.cause && <p className="truncate text-quiet text-xs">{tagLabel(event.cause)}</p>}
        {!small && !event.issue && event.tags.length > 0 && (
          <p className="truncate text-quiet text-xs">{event.tags.slice(0, TAGS_SHOWN).map(tagLabel).join(" · ")}</p>
        )}
      </div>
      <span
        aria-hidden="true"
        className="pointer-events-none absolute inset-0 rounded-xl group-has-[:focus-visible]:outline-2 group-has-[:focus-visible]:outline-focus group-has-[:focus-visible]:-outline-offset-2"
      />
    </article>
  );
});

export function EventCardSkeleton({ small = false }: { small?: boolean }) {
  return (
    <div
      aria-hidden="true"
      className={cn("overflow-hidden rounded-xl border border-l-4 bg-surface", small && "flex")}
    >
      <div className={cn("aspect-video animate-pulse bg-raised", small && "w-28 shrink-0")} />
      <div className={cn("grid flex-1 gap-2 p-3", small ? "content-center" : "h-[6.375rem] content-start")}>
        <div className="h-3.5 w-1/3 animate-pulse rounded bg-raised" />
        <div className="h-3.5 w-1/2 animate-pulse rounded bg-raised" />
        {!small && <div className="h-3 w-2/3 animate-pulse rounded bg-raised" />}
      </div>
    </div>
  );
}
