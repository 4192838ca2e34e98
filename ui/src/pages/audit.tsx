import { CircleAlert, CircleCheck, Download, FilterX, ScrollText, ShieldCheck } from "lucide-react";
import { useMemo, useState } from "react";
import { Link } from "react-router";
import { download, saveFile } from "@/api/download";
import { AUDIT_EXPORT, type AuditFilter, useAudit, useVerifyAudit } from "@/api/settings";
import type { AuditEntry } from "@/api/types";
import { EmptyState } from "@/components/empty-state";
import { SentProblem } from "@/components/form-problem";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { DateField, Field } from "@/components/ui/field";
import { Cell, Row } from "@/components/ui/table";
import { detailText, flagOf, objectPage } from "@/display/audit";
import { bytesText } from "@/display/sizes";
import { dateAndTime, startOfDay, startOfNextDay } from "@/display/times";
import { useAddress } from "@/hooks/use-address";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTellFailure } from "@/hooks/use-tell";
import { useWritten } from "@/hooks/use-written";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/audit";
import { tell } from "@/shell/notices";

const useWords = addWords("audit", words);

export function askedAudit(address: URLSearchParams): AuditFilter {
  const [who, action] = [address.get("who")?.trim(), address.get("action")?.trim()];
  const [first, last] = [address.get("from"), address.get("to")];
  const from = first ? startOfDay(first) : undefined;
  const to = last ? startOfNextDay(last) : undefined;
  return {
    ...(who ? { who } : {}),
    ...(action ? { action } : {}),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

export function AuditPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { address, patch, clear } = useAddress();
  const [who, action] = [useWritten("who"), useWritten("action")];
  const filter = useMemo(() => askedAudit(address), [address]);
  const query = useAudit(filter);
  const entries = query.data?.pages.flatMap((page) => page.entries);
  const headings = [t("when"), t("who"), t("action"), t("object"), t("details")];
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} actions={<Export />} />
      <Verify />
      <search className="mb-4 grid grid-cols-2 items-end gap-3 lg:flex" aria-label={t("list")}>
        <Field label={t("filterWho")} {...who} className="h-9" />
        <Field label={t("filterAction")} {...action} className="h-9" />
        <DateField
          label={t("from")}
          value={address.get("from") ?? ""}
          onChange={(event) => patch({ from: event.target.value })}
        />
        <DateField
          label={t("to")}
          value={address.get("to") ?? ""}
          onChange={(event) => patch({ to: event.target.value })}
        />
        {address.size > 0 && (
          <Button variant="ghost" size="small" className="h-9" onClick={clear}>
            <FilterX aria-hidden="true" />
            {t("clear")}
          </Button>
        )}
      </search>
      <LoadedTable
        query={{ ...query, data: entries }}
        label={t("list")}
        headings={headings}
        empty={
          <EmptyState Icon={ScrollText} title={t("emptyTitle")} lead={t("emptyLead")}>
            <Button variant="outline" onClick={clear}>
              {t("clear")}
            </Button>
          </EmptyState>
        }
      >
        {(entry) => <EntryRow key={entry.entry_id} entry={entry} />}
      </LoadedTable>
      {entries && entries.length > 0 && <More query={query} end={t("end")} />}
    </>
  );
}

function EntryRow({ entry }: { entry: AuditEntry }) {
  const { t, i18n } = useWords();
  const said = useAction()(entry.action);
  const noun = (kind: string) =>
    i18n.exists(`nouns.${kind}`, { ns: "audit" }) ? t(`nouns.${kind as "camera"}`) : kind;
  const details = Object.entries(entry.details ?? {});
  const detail = ([name, value]: [string, unknown]) => {
    const named = i18n.exists(`names.${name}`, { ns: "audit" }) ? t(`names.${name as "role"}`) : name;
    const flag = flagOf(name, value);
    return `${named}: ${flag === null ? detailText(name, value, i18n.language) : t(flag ? "yes" : "no")}`;
  };
  const page = objectPage(entry.object_kind, entry.object_id);
  return (
    <Row>
      <Cell column={0} className="whitespace-nowrap tabular-nums">
        {dateAndTime(entry.at, i18n.language)}
      </Cell>
      <Cell column={1} className="lg:min-w-28">
        {entry.who}
        {entry.address && <span className="block font-mono text-quiet text-xs">{entry.address}</span>}
      </Cell>
      <Cell column={2}>
        {said ?? entry.action}
        {said && <span className="block font-mono text-quiet text-xs">{entry.action}</span>}
      </Cell>
      <Cell column={3} className="[overflow-wrap:anywhere]">
        {page ? (
          <Link to={page} className="text-accent underline underline-offset-4">
            {noun(entry.object_kind)}
          </Link>
        ) : (
          noun(entry.object_kind)
        )}{" "}
        <span className="text-quiet text-xs">{entry.object_name ?? entry.object_id}</span>
      </Cell>
      <Cell column={4} className="text-quiet text-xs [overflow-wrap:anywhere]">
        {details.length === 0 ? "–" : details.map(detail).join(" · ")}
      </Cell>
    </Row>
  );
}

/** What was done, in the reader's words; null: there are none. */
function useAction(): (action: string) => string | null {
  const { t, i18n } = useWords();
  const has = (key: string) => i18n.exists(key, { ns: "audit" });
  return (action) => {
    if (has(`acts.${action}`)) return t(`acts.${action as "sign_in"}`);
    const cut = action.lastIndexOf("_");
    const [noun, verb] = [action.slice(0, cut), action.slice(cut + 1)];
    if (!has(`nouns.${noun}`) || !has(`verbs.${verb}`)) return null;
    return t("said", { noun: t(`nouns.${noun as "camera"}`), verb: t(`verbs.${verb as "added"}`) });
  };
}

function Verify() {
  const { t } = useWords();
  const [entries, setEntries] = useState(0);
  const verify = useVerifyAudit(setEntries);
  const found = verify.data;
  return (
    <Card className="mb-5 grid gap-3 p-4">
      <div className="flex flex-wrap items-center gap-3">
        <Button variant="outline" size="small" disabled={verify.isPending} onClick={() => verify.mutate()}>
          <ShieldCheck aria-hidden="true" />
          {t("verify")}
        </Button>
        <output className="flex items-center gap-2 text-sm tabular-nums">
          {verify.isPending && t("verifying", { count: entries })}
          {found && found.findings.length === 0 && (
            <>
              <CircleCheck aria-hidden="true" className="size-5 text-live" />
              {t("whole", { count: found.entries })}
            </>
          )}
          {found && found.findings.length > 0 && (
            <>
              <CircleAlert aria-hidden="true" className="size-5 text-severity-3" />
              {t("broken", { count: found.findings.length })}
            </>
          )}
        </output>
      </div>
      <SentProblem error={verify.error} />
      {found && found.findings.length > 0 && (
        <ul className="grid gap-2 text-sm">
          {found.findings.map((one) => (
            <li key={`${one.batch_no} ${one.wrong}`}>
              <p className="font-medium text-severity-3">{one.message}</p>
              <p className="text-quiet">{one.what_to_do}</p>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Export() {
  const { t, i18n } = useWords();
  const failed = useTellFailure();
  const [busy, setBusy] = useState(false);

  async function begin(): Promise<void> {
    setBusy(true);
    try {
      const { file } = await download(AUDIT_EXPORT, () => undefined, new AbortController().signal);
      if (!file) return;
      saveFile(file, "audit.jsonl");
      tell({ text: t("exported", { size: bytesText(file.size, i18n.language) }) });
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Button variant="outline" disabled={busy} onClick={() => void begin()}>
      <Download aria-hidden="true" />
      {t(busy ? "exporting" : "export")}
    </Button>
  );
}
