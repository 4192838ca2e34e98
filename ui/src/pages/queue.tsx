import { CircleCheck, RotateCw } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { framePicture } from "@/api/addresses";
import {
  type JobFilter,
  useJobCounts,
  useJobs,
  useJobsStatus,
  useRequeueJob,
  useRequeueJobs,
} from "@/api/operations";
import type { Job } from "@/api/types";
import { Age } from "@/components/age";
import { CameraSelect } from "@/components/camera-select";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { EmptyState } from "@/components/empty-state";
import { Loaded } from "@/components/loaded";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { cn } from "@/components/ui/class-names";
import { Skeleton } from "@/components/ui/skeleton";
import { Cell, Row } from "@/components/ui/table";
import { ChoiceTabs } from "@/components/ui/tabs";
import { numberText } from "@/display/sizes";
import { useAddress } from "@/hooks/use-address";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTellFailure } from "@/hooks/use-tell";
import { useTroubleText } from "@/hooks/use-trouble-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/queue";
import { tell } from "@/shell/notices";

const useWords = addWords("queue", words);

export const JOB_STATES = ["dead", "queued", "delayed", "running", "skipped", "done"] as const;
type JobState = (typeof JOB_STATES)[number];

/** What is asked for, as the address says it: what was given up where it says nothing. */
export function askedJobs(address: URLSearchParams): JobFilter {
  const state = address.get("state");
  const status: JobState | null = state === "all" ? null : (JOB_STATES.find((one) => one === state) ?? "dead");
  const camera = address.get("camera");
  return { ...(status ? { status: [status] } : {}), ...(camera ? { camera_id: [camera] } : {}) };
}

export function QueuePage() {
  const { t, i18n } = useWords();
  usePageTitle(t("title"));
  const { address, patch } = useAddress();
  const filter = useMemo(() => askedJobs(address), [address]);
  const { data: counts } = useJobCounts();
  const query = useJobs(filter);
  const jobs = query.data?.pages.flatMap((page) => page.jobs);
  const [asking, setAsking] = useState(false);
  const requeue = useRequeueJobs();
  const dead = counts?.statuses.dead ?? 0;
  const isDead = filter.status?.[0] === "dead";
  const headings = [t("picture"), t("camera"), t("state"), t("reason"), t("captured"), t("attempt"), ""];
  return (
    <>
      <PageHead
        title={t("title")}
        lead={t("lead")}
        actions={
          <Button variant="outline" disabled={dead === 0} onClick={() => setAsking(true)}>
            <RotateCw aria-hidden="true" />
            {t("requeueAll")}
          </Button>
        }
      />
      <Analyzers />
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <ChoiceTabs
          label={t("state")}
          name="state"
          choices={[...JOB_STATES, "all" as const].map((value) => ({
            value,
            text:
              value === "all" ? (
                t("all")
              ) : (
                <>
                  {t(`status.${value}`)}
                  {counts && (
                    <span className="rounded-full bg-raised px-1.5 text-text text-xs tabular-nums">
                      {numberText(counts.statuses[value] ?? 0, i18n.language)}
                    </span>
                  )}
                </>
              ),
          }))}
        />
        <CameraSelect
          value={address.get("camera") ?? ""}
          onChange={(camera) => patch({ camera })}
          className="sm:w-44"
        />
      </div>
      <LoadedTable
        query={{ ...query, data: jobs }}
        label={t("list")}
        headings={headings}
        empty={
          <EmptyState
            Icon={CircleCheck}
            title={t(isDead ? "emptyDeadTitle" : "emptyTitle")}
            lead={t(isDead ? "emptyDeadLead" : "emptyLead")}
          />
        }
      >
        {(job) => <JobRow key={job.frame_uuid} job={job} />}
      </LoadedTable>
      <More query={query} />
      <ConfirmDialog
        open={asking}
        onClose={() => setAsking(false)}
        title={t("requeueTitle")}
        lead={t("requeueLead")}
        action={t("requeue")}
        onConfirm={async () => {
          const camera = address.get("camera");
          const done = await requeue.mutateAsync({
            statuses: ["dead"],
            reason: null,
            camera_ids: camera ? [camera] : [],
          });
          tell({ text: `${t("requeued", { count: done.requeued })}${done.more ? ` ${t("more")}` : ""}` });
        }}
      />
    </>
  );
}

function Analyzers() {
  const troubleText = useTroubleText();
  const { t } = useWords();
  const query = useJobsStatus();
  return (
    <Card className="mb-5 p-4">
      <Loaded query={query} waiting={<Skeleton className="h-10 w-full" />}>
        {(status) => (
          <div className="grid gap-2 text-sm">
            <p className="flex flex-wrap items-center gap-x-4 gap-y-1">
              <Badge
                className={cn(
                  status.standing === "stalled"
                    ? "border-severity-3/50 bg-severity-3/10 text-severity-3"
                    : "border-live/40 text-live",
                )}
              >
                {t(`standing.${status.standing}`)}
              </Badge>
              {status.last_done_at !== null && (
                <span className="text-quiet">
                  {t("lastDone")}: <Age at={status.last_done_at} />
                </span>
              )}
              {status.oldest_waiting_at !== null && (
                <span className="text-quiet">
                  {t("oldest")}: <Age at={status.oldest_waiting_at} />
                </span>
              )}
            </p>
            {status.analyzers.length > 0 && (
              <ul aria-label={t("analyzers")} className="grid gap-1">
                {status.analyzers.map((one) => (
                  <li key={`${one.dispatcher} ${one.url}`} className="flex flex-wrap items-center gap-x-3">
                    <span className="min-w-0 break-all font-mono text-xs">{one.url ?? one.dispatcher ?? "–"}</span>
                    <span className={one.state === "away" ? "text-severity-3" : ""}>
                      {t(`analyzerState.${one.state}`)}
                    </span>
                    <span className="text-quiet tabular-nums">
                      {t("inFlight", { count: one.in_flight, max: one.concurrency })}
                      {one.latency_ms !== null && `, ${t("latency", { ms: one.latency_ms })}`}
                    </span>
                    {one.last_error && <span className="text-severity-2">{troubleText(one.last_error)}</span>}
                  </li>
                ))}
              </ul>
            )}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

function JobRow({ job }: { job: Job }) {
  const { t } = useWords();
  const troubleText = useTroubleText();
  const { t: shared } = useTranslation();
  const failed = useTellFailure();
  const requeue = useRequeueJob();
  return (
    <Row>
      <Cell column={0} className="sm:w-32 sm:py-1.5">
        <Still
          src={framePicture(job.frame_uuid, "infer")}
          alt={shared("event.frameAt", { time: job.camera_name })}
          className="w-24 rounded-md max-sm:w-full"
        />
      </Cell>
      <Cell column={1} lead>
        {job.camera_name}
      </Cell>
      <Cell column={2}>
        <Badge className={job.status === "dead" ? "border-severity-3/50 text-severity-3" : "text-quiet"}>
          {t(`status.${job.status}`)}
        </Badge>
      </Cell>
      <Cell column={3}>
        {job.reason ? t(`reasons.${job.reason}`) : "–"}
        {job.error && <span className="block text-quiet text-xs">{troubleText(job.error)}</span>}
      </Cell>
      <Cell column={4}>
        <Age at={job.captured_at} />
      </Cell>
      <Cell column={5} className="tabular-nums">
        {job.attempt}
      </Cell>
      <Cell column={6}>
        {(job.status === "dead" || job.status === "skipped") && (
          <div className="flex sm:justify-end">
            <Button
              variant="outline"
              size="small"
              disabled={requeue.isPending}
              aria-label={`${t("requeue")}: ${job.camera_name}`}
              onClick={() =>
                requeue.mutate(job.frame_uuid, {
                  onSuccess: () => tell({ text: t("requeued", { count: 1 }) }),
                  onError: failed,
                })
              }
            >
              {t("requeue")}
            </Button>
          </div>
        )}
      </Cell>
    </Row>
  );
}
