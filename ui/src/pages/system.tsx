import { CircleAlert, CircleCheck } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { useRetention, useStatisticsByHour, useSystemStatus } from "@/api/operations";
import { useSession } from "@/api/queries";
import type { RetentionStatus, StatisticsBucket, SystemStatus } from "@/api/types";
import { HourBars } from "@/components/hour-bars";
import { Loaded } from "@/components/loaded";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Card } from "@/components/ui/card";
import { cn } from "@/components/ui/class-names";
import { Meter } from "@/components/ui/meter";
import { Skeleton } from "@/components/ui/skeleton";
import { bytesText, numberText } from "@/display/sizes";
import { hourAndMinute } from "@/display/times";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/system";

const useWords = addWords("system", words);

export function SystemPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { data: session } = useSession();
  const mayManage = session?.permissions.includes("manage_cameras") ?? false;
  const query = useSystemStatus();
  return (
    <>
      <PageHead title={t("title")} />
      <Loaded query={query} waiting={<Waiting />}>
        {(status) => (
          <div className="grid gap-4 md:grid-cols-2 xl:grid-cols-3">
            <Ready status={status} />
            <Cameras status={status} />
            <Analysis status={status} mayManage={mayManage} />
            <LiveView status={status} />
            {mayManage && <Storage />}
            <LastDay />
          </div>
        )}
      </Loaded>
    </>
  );
}

function Panel({
  title,
  children,
  link,
}: {
  title: string;
  children: ReactNode;
  link?: { to: string; text: string };
}) {
  return (
    <Card className="grid h-full content-start gap-3 p-4">
      <div className="flex items-center justify-between gap-2">
        <h2 className="font-semibold text-sm">{title}</h2>
        {link && (
          <Link to={link.to} className="rounded text-accent text-sm underline-offset-4 hover:underline">
            {link.text}
          </Link>
        )}
      </div>
      {children}
    </Card>
  );
}

function Lines({ lines }: { lines: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 text-sm">
      {lines.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-quiet">{name}</dt>
          <dd className="text-right tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Ready({ status }: { status: SystemStatus }) {
  const { t } = useWords();
  return (
    <Panel title={t("checks")}>
      <Badge
        className={
          status.ready
            ? "justify-self-start border-live/40 text-live"
            : "justify-self-start border-severity-3/50 bg-severity-3/10 text-severity-3"
        }
      >
        {status.ready ? <CircleCheck aria-hidden="true" /> : <CircleAlert aria-hidden="true" />}
        {t(status.ready ? "ready" : "notReady")}
      </Badge>
      <Lines
        lines={[
          ...Object.entries(status.checks).map(([name, cause]) => [name, cause ?? t("fine")] as const),
          [t("version"), status.version],
          [t("database"), status.store],
        ]}
      />
    </Panel>
  );
}

const HEALTH = ["up", "down", "unattended", "unknown", "off"] as const;

function Cameras({ status }: { status: SystemStatus }) {
  const { t, i18n } = useWords();
  return (
    <Panel title={t("cameras")} link={{ to: "/cameras", text: t("toCameras") }}>
      <p className="font-semibold text-3xl tabular-nums">{numberText(status.cameras, i18n.language)}</p>
      <Lines
        lines={HEALTH.filter((state) => status.health[state]).map((state) => [
          t(`health.${state}`),
          numberText(status.health[state] ?? 0, i18n.language),
        ])}
      />
    </Panel>
  );
}

function Analysis({ status, mayManage }: { status: SystemStatus; mayManage: boolean }) {
  const { t, i18n } = useWords();
  const waiting = Object.values(status.unfinished_jobs).reduce((sum, count) => sum + count, 0);
  return (
    <Panel title={t("analysis")} {...(mayManage ? { link: { to: "/queue", text: t("toQueue") } } : {})}>
      <p className={status.analyzer.standing === "stalled" ? "font-medium text-severity-3" : "font-medium"}>
        {t(`standing.${status.analyzer.standing}`)}
      </p>
      <Lines
        lines={[
          [t("waiting"), numberText(waiting, i18n.language)],
          [t("openEvents"), numberText(status.open_events, i18n.language)],
        ]}
      />
    </Panel>
  );
}

/** What live view may use and uses of the machine, and who was refused for want of it. */
function LiveView({ status }: { status: SystemStatus }) {
  const { t, i18n } = useWords();
  const { cpu_percent: cpu, memory_percent: memory, modal_budget: total } = status;
  const number = (value: number) => numberText(value, i18n.language);
  const used = total - status.modal_budget_remaining;
  const isThere = cpu !== null && memory !== null;
  return (
    <Panel title={t("live")}>
      <Badge
        className={cn(
          "justify-self-start",
          !isThere && "text-quiet",
          isThere && status.healthy && "border-live/40 text-live",
          isThere && !status.healthy && "border-severity-3/50 bg-severity-3/10 text-severity-3",
        )}
      >
        {isThere && status.healthy ? <CircleCheck aria-hidden="true" /> : <CircleAlert aria-hidden="true" />}
        {t(isThere ? (status.healthy ? "takesViews" : "overloaded") : "noStreamer")}
      </Badge>
      {status.load_warnings.map((warning) => (
        <p key={warning} className="text-severity-2 text-sm">
          {t(`warning.${warning}`)}
        </p>
      ))}
      {isThere && (
        <>
          <Meter
            label={t("units")}
            value={used}
            max={total}
            text={t("unitsText", { used: number(used), total: number(total) })}
          />
          {([["cpu", cpu] as const, ["memory", memory] as const] as const).map(([name, percent]) => (
            <Meter
              key={name}
              label={t(name)}
              value={percent}
              max={100}
              text={t("percent", { percent: number(Math.round(percent)) })}
              warnAt={status.load_warnings.includes(name) ? 0 : 2}
            />
          ))}
        </>
      )}
      <Lines
        lines={[
          [t("viewers"), t("viewersCount", { count: status.active_modals })],
          [
            t("asked"),
            t("askedText", {
              asked: number(status.modal_requests_24h),
              refused: number(status.modal_rejections_24h),
            }),
          ],
        ]}
      />
    </Panel>
  );
}

function Storage() {
  const { t } = useWords();
  const query = useRetention();
  return (
    <Panel title={t("storage")} link={{ to: "/settings/retention", text: t("toRetention") }}>
      <Loaded query={query} waiting={<Skeleton className="h-24 w-full" />}>
        {(retention) => <StorageLines retention={retention} />}
      </Loaded>
    </Panel>
  );
}

export function StorageLines({ retention }: { retention: RetentionStatus }) {
  const { t, i18n } = useWords();
  const size = (bytes: number) => bytesText(bytes, i18n.language);
  const kept = retention.kept.reduce((sum, one) => sum + one.bytes, 0);
  const days = retention.days_until_floor;
  return (
    <Lines
      lines={[
        [
          t("free"),
          retention.free_bytes === null
            ? "–"
            : `${size(retention.free_bytes)} (${t("floor", { size: size(retention.free_min_bytes) })})`,
        ],
        [t("kept"), size(kept)],
        [t("growth"), retention.grown_bytes_a_day > 0 ? size(retention.grown_bytes_a_day) : size(0)],
        [t("forecast"), days === null ? t("forecastNever") : t("forecastDays", { count: Math.floor(days) })],
      ]}
    />
  );
}

function LastDay() {
  const { t } = useWords();
  const query = useStatisticsByHour();
  return (
    <Panel title={t("day")}>
      <Loaded query={query} waiting={<Skeleton className="h-32 w-full" />}>
        {({ buckets }) =>
          buckets.length === 0 ? <p className="text-quiet text-sm">{t("noFigures")}</p> : <Bars buckets={buckets} />
        }
      </Loaded>
    </Panel>
  );
}

function Bars({ buckets }: { buckets: readonly StatisticsBucket[] }) {
  const { t, i18n } = useWords();
  const total = (name: "looks" | "looks_failed" | "analyzed" | "events") =>
    numberText(
      buckets.reduce((sum, bucket) => sum + bucket[name], 0),
      i18n.language,
    );
  const hours = buckets.map((bucket) => ({
    at: bucket.start_at,
    looks: bucket.looks,
    failed: bucket.looks_failed,
    events: bucket.events,
    label: t("bar", {
      time: hourAndMinute(bucket.start_at, i18n.language),
      looks: numberText(bucket.looks, i18n.language),
      failed: numberText(bucket.looks_failed, i18n.language),
      events: numberText(bucket.events, i18n.language),
    }),
  }));
  return (
    <>
      <p className="text-quiet text-sm tabular-nums">
        {t("totals", {
          looks: total("looks"),
          failed: total("looks_failed"),
          analyzed: total("analyzed"),
          events: total("events"),
        })}
      </p>
      <HourBars hours={hours} label={t("chart")} />
    </>
  );
}

function Waiting() {
  return (
    <div aria-busy="true" className="grid gap-4 md:grid-cols-2 xl:grid-cols-3">
      {["a", "b", "c"].map((name) => (
        <Skeleton key={name} className="h-44 w-full rounded-xl" />
      ))}
    </div>
  );
}
