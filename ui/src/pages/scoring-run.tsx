import { Download, Pause, Play, RotateCw, Square } from "lucide-react";
import { useState } from "react";
import { useParams } from "react-router";
import { asProblem } from "@/api/problem";
import { isOver, useControlRun, useScoringChunks, useScoringRun } from "@/api/scoring";
import type { ScoringRunDetail } from "@/api/types";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { FormProblem } from "@/components/entry-page";
import { Loaded } from "@/components/loaded";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Meter } from "@/components/ui/meter";
import { Skeleton } from "@/components/ui/skeleton";
import { Cell, Row } from "@/components/ui/table";
import { knownReason, moneyText, rowsDone } from "@/display/scoring";
import { numberText, percentText } from "@/display/sizes";
import { durationText } from "@/display/times";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTellFailure } from "@/hooks/use-tell";
import { RunBadge, ScoringNotFound, useScoringWords } from "./scoring";
import { Fact } from "./scoring-sheet";

const DOCUMENTS = ["run_report.json", "chunk_meta.json", "checkpoint.json"] as const;

export function ScoringRunPage() {
  const { uuid = "" } = useParams();
  const { t } = useScoringWords();
  const query = useScoringRun(uuid);
  usePageTitle(query.data?.brought?.name ?? query.data?.sheet ?? t("title"));
  if (query.error && asProblem(query.error).status === 404) return <ScoringNotFound />;
  return (
    <Loaded query={query} waiting={<Skeleton className="h-64 w-full" />}>
      {(run) => (
        <>
          <PageHead
            title={run.brought?.name ?? run.sheet}
            back={{ to: "/scoring", text: t("toList") }}
            beside={<RunBadge status={run.status} />}
            actions={<Actions run={run} />}
          />
          <Pausing run={run} />
          <div className="my-4 grid gap-4 lg:grid-cols-2">
            <Progress run={run} />
            <Figures run={run} />
          </div>
          <Notes run={run} />
          <Chunks run={run} />
        </>
      )}
    </Loaded>
  );
}

/** Why it is paused or failed: in words of ours where there are some, and as it was told. */
function Pausing({ run }: { run: ScoringRunDetail }) {
  const { t } = useScoringWords();
  const known = knownReason(run.reason);
  const words = [known && run.message ? t(`reasons.${known}`) : "", known === "budget" ? "" : (run.message ?? "")];
  const text = words.filter((one) => one !== "").join(": ");
  return text ? <FormProblem text={text} /> : null;
}

function Actions({ run }: { run: ScoringRunDetail }) {
  const { t } = useScoringWords();
  const control = useControlRun();
  const failed = useTellFailure();
  const [cancelling, setCancelling] = useState(false);
  const ask = (wanted: "run" | "pause" | "retry") =>
    control.mutate({ uuid: run.run_uuid, wanted }, { onError: failed });
  const address = `/api/scoring/runs/${run.run_uuid}`;
  return (
    <>
      {run.status === "running" && (
        <Button variant="outline" size="small" onClick={() => ask("pause")}>
          <Pause aria-hidden="true" />
          {t("pause")}
        </Button>
      )}
      {(run.status === "paused" || run.status === "failed") && (
        <Button variant="outline" size="small" onClick={() => ask("run")}>
          <Play aria-hidden="true" />
          {t("resume")}
        </Button>
      )}
      {run.totals.failed > 0 && run.status !== "running" && run.status !== "cancelled" && (
        <Button variant="outline" size="small" onClick={() => ask("retry")}>
          <RotateCw aria-hidden="true" />
          {t("retry")}
        </Button>
      )}
      {!isOver(run) && (
        <Button variant="outline" size="small" onClick={() => setCancelling(true)}>
          <Square aria-hidden="true" />
          {t("cancel")}
        </Button>
      )}
      {run.has_result && (
        <Button asChild size="small">
          <a href={`${address}/result`} download>
            <Download aria-hidden="true" />
            {t("result")}
          </a>
        </Button>
      )}
      <ConfirmDialog
        open={cancelling}
        onClose={() => setCancelling(false)}
        title={t("cancelTitle")}
        lead={t("cancelLead")}
        action={t("cancel")}
        onConfirm={() => control.mutateAsync({ uuid: run.run_uuid, wanted: "cancel" })}
      />
    </>
  );
}

function Progress({ run }: { run: ScoringRunDetail }) {
  const { t, i18n } = useScoringWords();
  const { done, all } = rowsDone(run);
  const number = (value: number) => numberText(value, i18n.language);
  return (
    <Card className="grid content-start gap-3 p-4">
      <h2 className="font-semibold text-sm">{t("progress")}</h2>
      <Meter label={t("chunks")} value={done} max={all} text={t("chunksDone", { done, all })} warnAt={2} />
      <dl className="grid gap-1">
        <Fact name={t("written")}>{number(run.totals.written)}</Fact>
        <Fact name={t("failed")}>{number(run.totals.failed)}</Fact>
        <Fact name={t("calls")}>{number(run.calls)}</Fact>
        <Fact name={t("cost")}>{moneyText(run.cost_micro / 1_000_000, i18n.language)}</Fact>
        {run.budget_micro !== null && (
          <Fact name={t("budget")}>{moneyText(run.budget_micro / 1_000_000, i18n.language)}</Fact>
        )}
      </dl>
      <p className="text-quiet text-xs">{t("documents")}</p>
      <ul className="flex flex-wrap gap-x-4 gap-y-1 text-sm">
        {DOCUMENTS.map((name) => (
          <li key={name}>
            <a
              href={`/api/scoring/runs/${run.run_uuid}/files/${name}`}
              download
              className="text-accent underline-offset-4 hover:underline"
            >
              {name}
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Figures({ run }: { run: ScoringRunDetail }) {
  const { t, i18n } = useScoringWords();
  const { metrics } = run;
  const percent = (share: number) => percentText(share, i18n.language);
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{run.model}</h2>
      <dl className="grid gap-1">
        <Fact name={t("categories")}>{run.categories.join(", ")}</Fact>
        <Fact name={t("hitShare")}>{percent(metrics.hit_share)}</Fact>
        <Fact name={t("refused")}>{percent(metrics.refused_share)}</Fact>
        <Fact name={t("limit")}>
          {metrics.limit === null ? "–" : numberText(Math.floor(metrics.limit), i18n.language)}
        </Fact>
        <Fact name={t("delay")}>
          {metrics.write_delay_ms === null ? "–" : `${numberText(metrics.write_delay_ms, i18n.language)} ms`}
        </Fact>
        <Fact name={t("processing")}>{durationText(metrics.processing_ms)}</Fact>
        <Fact name={t("tokens")}>
          {numberText(run.tokens_in, i18n.language)} / {numberText(run.tokens_out, i18n.language)}
        </Fact>
      </dl>
    </Card>
  );
}

function Notes({ run }: { run: ScoringRunDetail }) {
  const { t } = useScoringWords();
  if (run.notes.length === 0) return null;
  return (
    <section aria-label={t("notes")} className="mb-6">
      <h2 className="mb-2 font-semibold">{t("notes")}</h2>
      <ul className="grid gap-1 text-sm">
        {run.notes.map((one) => (
          <li key={`${one.row} ${one.first_category}`}>
            <span className="text-quiet tabular-nums">{t("row", { row: one.row })}: </span>
            {one.note}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Chunks({ run }: { run: ScoringRunDetail }) {
  const { t } = useScoringWords();
  const query = useScoringChunks(run.run_uuid, run.status === "running");
  const headings = [t("range"), t("state"), t("written"), t("failed"), t("retries"), t("lastError")];
  return (
    <section aria-label={t("chunks")}>
      <h2 className="mb-2 font-semibold">{t("chunks")}</h2>
      <LoadedTable
        query={{ ...query, data: query.data?.pages.flatMap((page) => page.chunks) }}
        label={t("chunks")}
        headings={headings}
      >
        {(one) => (
          <Row key={one.number}>
            <Cell column={0} lead={false} className="tabular-nums">
              {one.row_start}–{one.row_end}
            </Cell>
            <Cell column={1}>
              <Badge className={one.status === "failed" ? "border-severity-3/50 text-severity-3" : "text-quiet"}>
                {t(`chunkStates.${one.status}`)}
              </Badge>
            </Cell>
            <Cell column={2}>{one.written}</Cell>
            <Cell column={3}>{one.failed}</Cell>
            <Cell column={4}>{one.retry_count}</Cell>
            <Cell column={5}>{one.last_error ?? "–"}</Cell>
          </Row>
        )}
      </LoadedTable>
      <More query={query} />
    </section>
  );
}
