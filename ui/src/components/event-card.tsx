import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { framePicture } from "@/api/addresses";
import type { Event } from "@/api/types";
import { dateAndTime, shortMoment } from "@/display/times";
import { useNow } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { Age } from "./age";
import { OngoingBadge } from "./ongoing-badge";
import { SeverityBadge, severityEdge } from "./severity-badge";
import { Still } from "./still";
import { cn } from "./ui/class-names";

const TAGS_SHOWN = 3;

/** One event in a grid: picture, what, where, when. `small` is a line below another heading, for a narrow column. */
export function EventCard({ event, small = false }: { event: Event; small?: boolean }) {
  const { t, i18n } = useTranslation();
  const { eventTitle, tagLabel } = usePhrases();
  const now = useNow();
  const phrase = eventTitle(event);
  const Heading = small ? "h3" : "h2";
  const began = dateAndTime(event.start_at, i18n.language);
  return (
    <article
      className={cn(
        "group relative h-full overflow-hidden rounded-xl border border-l-4 bg-surface shadow-xs transition-shadow hover:shadow-md",
        small && "flex",
        severityEdge(event.severity_max),
      )}
    >
      <Still
        src={event.best_frame_uuid ? framePicture(event.best_frame_uuid, "infer") : null}
        alt={t("event.picture", { camera: event.camera_name, phrase, time: began })}
        none={t("event.noPicture")}
        {...(small ? { className: "w-28 shrink-0 self-start" } : {})}
      />
      <div className={cn("grid min-w-0 flex-1 content-start gap-1.5 p-3", small && "gap-1 px-3 py-1.5")}>
        <div className="flex flex-wrap items-center gap-1.5">
          <SeverityBadge severity={event.severity_max} />
          {event.state === "open" && <OngoingBadge />}
        </div>
        <Heading className="truncate font-semibold text-sm">
          <Link
            to={`/events/${event.event_uuid}`}
            className="after:absolute after:inset-0 focus-visible:outline-none"
          >
            {phrase}
          </Link>
        </Heading>
        <p className="truncate text-quiet text-xs">
          {event.camera_name} ·{" "}
          <time dateTime={new Date(event.start_at).toISOString()}>
            {shortMoment(event.start_at, now, i18n.language)}
          </time>
          {!small && (
            <>
              {" "}
              (<Age at={event.start_at} />)
            </>
          )}
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
}

export function EventCardSkeleton({ small = false }: { small?: boolean }) {
  return (
    <div
      aria-hidden="true"
      className={cn("overflow-hidden rounded-xl border border-l-4 bg-surface", small && "flex")}
    >
      <div className={cn("aspect-video animate-pulse bg-raised", small && "w-28 shrink-0")} />
      <div className="grid flex-1 content-center gap-2 p-3">
        <div className="h-3.5 w-1/3 animate-pulse rounded bg-raised" />
        <div className="h-3.5 w-1/2 animate-pulse rounded bg-raised" />
        {!small && <div className="h-3 w-2/3 animate-pulse rounded bg-raised" />}
      </div>
    </div>
  );
}
