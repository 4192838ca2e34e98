import { Bell, CirclePause, Eye, Hourglass, TriangleAlert, Unplug, VideoOff } from "lucide-react";
import { memo } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { framePicture } from "@/api/addresses";
import type { Camera, Label } from "@/api/types";
import { isSeen, isWatchable, STANDING_STEP_MS, type Standing, standingOf } from "@/display/camera-standing";
import { shortMoment } from "@/display/times";
import { useNear } from "@/hooks/use-near";
import { useNowBy } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { liveTarget } from "@/live/addresses";
import { Age } from "./age";
import { OngoingBadge } from "./ongoing-badge";
import { SeverityBadge, severityEdge } from "./severity-badge";
import { Still } from "./still";
import { cn } from "./ui/class-names";

interface Props {
  camera: Camera;
  /** It is on the screen from the beginning; others are drawn when they come near it. */
  first?: boolean;
}

/**
 * A camera on the wall: it opens live view; what goes on leads to its event, the bell to all of them. Far from the
 * screen only its name and its place are there, so that hundreds cost what is seen of them.
 */
export const CameraTile = memo(function CameraTile({ camera, first = true }: Props) {
  const { t } = useTranslation();
  const { search } = useLocation();
  const [ref, isNear] = useNear<HTMLElement>(first);
  const standing = standingOf(camera, useNowBy(STANDING_STEP_MS));
  const picture = camera.latest_picture;
  const { open_event } = camera;
  const eventUuid = open_event?.event_uuid ?? camera.health.issues[0]?.event_uuid;
  const events = eventUuid ? `/events/${eventUuid}` : `/events?camera=${camera.camera_id}`;
  return (
    <article
      ref={ref}
      aria-label={camera.name}
      className={cn(
        "group @container relative h-full overflow-hidden rounded-xl border border-l-4 bg-surface shadow-xs transition-shadow [contain:layout_paint_style] hover:shadow-md",
        open_event ? severityEdge(open_event.severity_max) : "border-l-line",
      )}
    >
      {isNear ? (
        <div className="relative">
          <Still
            src={picture ? framePicture(picture.frame_uuid, "infer") : null}
            alt={t("camera.picture", { name: camera.name })}
            none={standing.kind === "waiting" ? t("camera.waiting") : t("camera.noPicture")}
            troubled={!isSeen(standing)}
          />
          {!isSeen(standing) && <Trouble standing={standing} />}
          {standing.kind === "issue" && <Causes causes={standing.issues} Icon={TriangleAlert} />}
          {standing.kind === "watched" && <Causes causes={[standing.cause]} Icon={Eye} />}
        </div>
      ) : (
        <div aria-hidden="true" className="aspect-video bg-raised" />
      )}
      <div className="flex h-16 items-center gap-2 px-3 py-2 @max-3xs:h-12 @max-3xs:px-2">
        <div className="min-w-0 flex-1">
          <h2 title={camera.name} className="truncate font-medium text-sm">
            <Link
              data-tile
              to={isWatchable(camera) ? liveTarget(search, camera.camera_id) : events}
              aria-label={isWatchable(camera) ? t("live.open", { name: camera.name }) : undefined}
              className="after:absolute after:inset-0 focus-visible:outline-none"
            >
              {camera.name}
            </Link>
          </h2>
          <p className="truncate text-quiet text-xs tabular-nums">
            {picture && isNear && <Age at={picture.captured_at} />}
            {!picture && t("camera.noPicture")}
          </p>
        </div>
        {/* Above the link that covers the tile. */}
        <Link to={events} className="relative rounded-md p-1 text-quiet hover:text-text">
          {open_event && isNear ? (
            <Ongoing event={open_event} />
          ) : (
            <Bell aria-label={t("live.events")} role="img" className="size-4" />
          )}
        </Link>
      </div>
      <span
        aria-hidden="true"
        className="pointer-events-none absolute inset-0 rounded-xl group-has-[:focus-visible]:outline-2 group-has-[:focus-visible]:outline-focus group-has-[:focus-visible]:-outline-offset-2"
      />
    </article>
  );
});

function Ongoing({ event }: { event: NonNullable<Camera["open_event"]> }) {
  const { eventPhrase } = usePhrases();
  return (
    <div className="flex flex-col items-end gap-1">
      <div className="flex gap-1">
        {/* What is only recorded is said by the edge; its name is worth more here. */}
        {event.severity_max > 0 && <SeverityBadge severity={event.severity_max} className="@max-xs:hidden" />}
        <OngoingBadge textClassName="@max-3xs:sr-only" />
      </div>
      <p className="max-w-40 truncate text-quiet text-xs @max-3xs:hidden">{eventPhrase(event.primary_event)}</p>
    </div>
  );
}

function Causes({ causes, Icon }: { causes: Label[]; Icon: typeof Eye }) {
  const { tagLabel } = usePhrases();
  return (
    <ul className="absolute inset-x-0 bottom-0 grid gap-1 bg-black/70 px-3 py-2 text-sm text-white">
      {causes.map((cause) => (
        <li key={cause.id} className="flex items-center gap-2">
          <Icon aria-hidden="true" className="size-4 shrink-0" />
          {tagLabel(cause)}
        </li>
      ))}
    </ul>
  );
}

const ICONS = {
  failed: VideoOff,
  silent: VideoOff,
  unattended: Unplug,
  off: CirclePause,
  issue: TriangleAlert,
  waiting: Hourglass,
  good: Hourglass,
  watched: Eye,
};

function Trouble({ standing }: { standing: Standing }) {
  const { t, i18n } = useTranslation();
  const { tagLabel } = usePhrases();
  const now = useNowBy(STANDING_STEP_MS);
  const Icon = ICONS[standing.kind];
  const lines = troubleLines(standing);
  return (
    <div className="absolute inset-0 grid place-content-center justify-items-center gap-1 overflow-hidden bg-black/70 p-3 text-center text-white @max-3xs:gap-0 @max-3xs:p-1">
      <Icon aria-hidden="true" className="size-7 shrink-0 @max-3xs:size-5 @max-[9rem]:hidden" />
      {lines.map((line) => (
        <p
          key={line}
          className="text-balance text-sm first-of-type:font-semibold @max-3xs:line-clamp-3 @max-3xs:text-xs @max-3xs:[&:not(:first-of-type)]:hidden"
        >
          {line}
        </p>
      ))}
    </div>
  );

  function troubleLines(of: Standing): string[] {
    if (of.kind === "off") return [t("camera.off")];
    if (of.kind === "silent") return [t("camera.silent"), t("camera.since", { time: moment(of.since) })];
    if (of.kind === "unattended") {
      return [t("camera.unattended"), ...(of.since === null ? [] : [t("camera.since", { time: moment(of.since) })])];
    }
    if (of.kind !== "failed") return [];
    const since = of.since === null ? t("camera.never") : t("camera.since", { time: moment(of.since) });
    if (of.cause) return [t("camera.failed"), tagLabel(of.cause), since];
    const reason = i18n.exists(`camera.reason.${of.reason}`)
      ? t(`camera.reason.${of.reason}` as "camera.reason.error")
      : of.reason;
    return [t("camera.failed"), reason, since];
  }

  function moment(ms: number): string {
    return shortMoment(ms, now, i18n.language);
  }
}

export function CameraTileSkeleton() {
  return (
    <div aria-hidden="true" className="overflow-hidden rounded-xl border border-l-4 bg-surface">
      <div className="aspect-video animate-pulse bg-raised" />
      <div className="grid h-16 content-center gap-2 px-3 py-2">
        <div className="h-3.5 w-1/2 animate-pulse rounded bg-raised" />
        <div className="h-3 w-1/4 animate-pulse rounded bg-raised" />
      </div>
    </div>
  );
}
