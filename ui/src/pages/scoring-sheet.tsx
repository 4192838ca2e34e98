import { Play, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useNavigate, useParams } from "react-router";
import { asProblem } from "@/api/problem";
import { useBeginRun, useChangeSheet, useRemoveSheet, useScoringSheet } from "@/api/scoring";
import type { ScoringSheet, ScoringWishes } from "@/api/types";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { FormProblem, sentValues } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { Loaded } from "@/components/loaded";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Field } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import { knownProblem, moneyText, readBudget } from "@/display/scoring";
import { numberText } from "@/display/sizes";
import { durationText } from "@/display/times";
import { usePageTitle } from "@/hooks/use-page-title";
import { tell } from "@/shell/notices";
import { ScoringNotFound, useScoringWords } from "./scoring";

export function ScoringSheetPage() {
  const { uuid = "" } = useParams();
  const { t } = useScoringWords();
  const query = useScoringSheet(uuid);
  usePageTitle(query.data?.name ?? t("title"));
  const navigate = useNavigate();
  const remove = useRemoveSheet();
  const [removing, setRemoving] = useState(false);
  if (query.error && asProblem(query.error).status === 404) return <ScoringNotFound />;
  return (
    <Loaded query={query} waiting={<Skeleton className="h-64 w-full" />}>
      {(sheet) => (
        <>
          <PageHead
            title={sheet.name}
            back={{ to: "/scoring", text: t("toList") }}
            beside={<Badge className="text-quiet">{t(`states.${sheet.state}`)}</Badge>}
            actions={
              <Button variant="outline" size="small" onClick={() => setRemoving(true)}>
                <Trash2 aria-hidden="true" />
                {t("remove")}
              </Button>
            }
          />
          {sheet.message && <FormProblem text={sheet.message} />}
          <div className="grid gap-4 lg:grid-cols-2">
            <Check sheet={sheet} />
            <Estimate sheet={sheet} />
            {sheet.kind !== "events" && (sheet.state === "looked" || sheet.state === "refused") && (
              <Layout sheet={sheet} />
            )}
          </div>
          <ConfirmDialog
            open={removing}
            onClose={() => setRemoving(false)}
            title={t("removeTitle")}
            lead={t("removeLead")}
            action={t("remove")}
            onConfirm={async () => {
              await remove.mutateAsync(uuid);
              tell({ text: t("removed") });
              void navigate("/scoring");
            }}
          />
        </>
      )}
    </Loaded>
  );
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex justify-between gap-4 text-sm">
      <dt className="text-quiet">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere] text-right tabular-nums">{children}</dd>
    </div>
  );
}

function FindingText({ finding }: { finding: NonNullable<ScoringSheet["check"]>["findings"][number] }) {
  const { t } = useScoringWords();
  const known = knownProblem(finding.problem);
  if (!known) return <>{finding.message}</>;
  return (
    <span title={finding.message}>
      {finding.where && `${finding.where}: `}
      {t(`problems.${known}`)}
    </span>
  );
}

function Check({ sheet }: { sheet: ScoringSheet }) {
  const { t, i18n } = useScoringWords();
  const check = sheet.check;
  const number = (value: number) => numberText(value, i18n.language);
  if (!check) return null;
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{t("check")}</h2>
      <dl className="grid gap-1">
        <Fact name={t("rows")}>{number(check.rows)}</Fact>
        <Fact name={t("distinct")}>{number(check.distinct_rows)}</Fact>
        <Fact name={t("empty")}>{number(check.empty_rows)}</Fact>
        <Fact name={t("filled")}>{number(check.filled_cells)}</Fact>
        <Fact name={t("categories")}>{sheet.categories.join(", ") || number(check.categories)}</Fact>
      </dl>
      {check.findings.length === 0 ? (
        <p className="mt-3 text-quiet text-sm">{t("fine")}</p>
      ) : (
        <ul className="mt-3 grid gap-2 text-sm">
          {check.findings.map((one) => (
            <li key={`${one.problem} ${one.where} ${one.message}`}>
              <Badge className={one.severity === "error" ? "border-severity-3/50 text-severity-3" : "text-quiet"}>
                {t(one.severity)}
              </Badge>{" "}
              <FindingText finding={one} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Estimate({ sheet }: { sheet: ScoringSheet }) {
  const { t, i18n } = useScoringWords();
  const navigate = useNavigate();
  const begin = useBeginRun();
  const [isWrong, setWrong] = useState(false);
  const estimate = sheet.estimate;
  const number = (value: number) => numberText(value, i18n.language);
  if (!estimate || !sheet.check?.ok) return null;
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{t("estimate")}</h2>
      <dl className="mb-4 grid gap-1">
        <Fact name={t("model")}>{sheet.model}</Fact>
        <Fact name={t("calls")}>{number(estimate.unique_calls)}</Fact>
        <Fact name={t("same")}>{number(estimate.same)}</Fact>
        <Fact name={t("hits")}>{number(estimate.cache_hits)}</Fact>
        <Fact name={t("tokens")}>
          {number(estimate.tokens_in)} / {number(estimate.tokens_out)}
        </Fact>
        <Fact name={t("cost")}>{moneyText(estimate.cost_usd, i18n.language) ?? t("priceless")}</Fact>
        <Fact name={t("time")}>
          {durationText(estimate.seconds * 1000)} ({t(estimate.is_time_measured ? "measured" : "guessed")})
        </Fact>
      </dl>
      <form
        className="grid gap-3"
        onSubmit={(event) => {
          const budgetMicro = readBudget(sentValues(event).budget ?? "");
          setWrong(budgetMicro === undefined);
          if (budgetMicro === undefined) return;
          begin.mutate(
            { uuid: sheet.sheet_uuid, budgetMicro },
            { onSuccess: (run) => void navigate(`/scoring/runs/${run.run_uuid}`) },
          );
        }}
      >
        {sheet.is_priced ? (
          <Field label={t("budget")} name="budget" inputMode="decimal" autoComplete="off" hint={t("budgetHint")} />
        ) : (
          <p className="text-quiet text-sm">{t("budgetNone")}</p>
        )}
        {isWrong && <FormProblem text={t("budgetWrong")} />}
        <SentProblem error={begin.error} />
        <Button type="submit" disabled={begin.isPending}>
          <Play aria-hidden="true" />
          {t("begin")}
        </Button>
      </form>
    </Card>
  );
}

const ROWS = ["name_row", "definition_row", "detail_row", "first_data_row"] as const;
const COLUMNS = ["text_column", "first_category_column"] as const;

function Layout({ sheet }: { sheet: ScoringSheet }) {
  const { t } = useScoringWords();
  const change = useChangeSheet();
  return (
    <Card className="p-4">
      <h2 className="mb-1 font-semibold text-sm">{t("layout")}</h2>
      <p className="mb-3 text-quiet text-xs">{t("layoutLead")}</p>
      <form
        className="grid gap-3 sm:grid-cols-2"
        onSubmit={(event) => {
          const values = sentValues(event);
          const layout: NonNullable<ScoringWishes["layout"]> = {};
          for (const name of COLUMNS) if (values[name]) layout[name] = values[name];
          for (const name of ROWS) if (values[name]) layout[name] = Number(values[name]);
          if (values.tab) layout.tab = values.tab;
          change.mutate({ uuid: sheet.sheet_uuid, body: { layout } as ScoringWishes });
        }}
      >
        {COLUMNS.map((name) => (
          <Field key={name} label={t(`layouts.${name}`)} name={name} pattern="[A-Za-z]{1,3}" autoComplete="off" />
        ))}
        {ROWS.map((name) => (
          <Field key={name} label={t(`layouts.${name}`)} name={name} type="number" min={0} max={1001} />
        ))}
        <Field label={t("layouts.tab")} name="tab" maxLength={100} autoComplete="off" />
        <div className="self-end">
          <Button type="submit" variant="outline" disabled={change.isPending}>
            {t("again")}
          </Button>
        </div>
        <SentProblem error={change.error} />
      </form>
    </Card>
  );
}
