import { Download, FileUp } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { type ImportedFile, useCheckImport, useImport, useSites } from "@/api/camera";
import type { ImportAnswer } from "@/api/types";
import { FormProblem } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { CheckField, SelectField, TextField } from "@/components/ui/field";
import { FileField } from "@/components/ui/file-field";
import { Cell, Row, Table } from "@/components/ui/table";
import { EXAMPLE_CSV, formatOf, readText, TEXT_MAX } from "@/display/import-file";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";

const useWords = addWords("cameras", words);

const EMPTY: ImportedFile = { format: "csv", text: "", site: null };

/** Many cameras at once: a file is read, checked line by line, and added only when somebody has seen what it does. */
export function CameraImportPage() {
  const { t } = useWords();
  usePageTitle(t("importTitle"));
  const [file, setFile] = useState(EMPTY);
  const [check, send] = [useCheckImport(), useImport()];
  const change = (changes: Partial<ImportedFile>) => {
    setFile((now) => ({ ...now, ...changes }));
    // What was found is about the file as it was.
    check.reset();
    send.reset();
  };
  const answer = send.data ?? check.data;
  return (
    <div className="mx-auto max-w-5xl">
      <PageHead title={t("importTitle")} lead={t("importLead")} back={{ to: "/cameras", text: t("toList") }} />
      <Choice
        file={file}
        onChange={change}
        isBusy={check.isPending || send.isPending}
        isChecking={check.isPending}
        onCheck={() => {
          send.reset();
          check.mutate(file);
        }}
      />
      <div aria-live="polite" className="mt-5 grid gap-5">
        <SentProblem error={check.error ?? send.error} />
        {answer && <Problems answer={answer} />}
        {answer && <Found answer={answer} />}
      </div>
      {check.data && !send.data && (
        <Confirm
          answer={check.data}
          isBusy={send.isPending}
          onImport={(skipBad) =>
            send.mutate(
              { file, skipBad },
              {
                onSuccess: ({ cameras }) =>
                  tell({ text: t("importDone", { count: cameras.filter((one) => one.action === "added").length }) }),
              },
            )
          }
        />
      )}
      {send.data && (
        <div className="mt-5 flex flex-wrap justify-end gap-2">
          <Button variant="outline" onClick={() => change(EMPTY)}>
            {t("importAgain")}
          </Button>
          <Button asChild>
            <Link to="/cameras">{t("toList")}</Link>
          </Button>
        </div>
      )}
    </div>
  );
}

interface ChoiceProps {
  file: ImportedFile;
  onChange: (changes: Partial<ImportedFile>) => void;
  isBusy: boolean;
  isChecking: boolean;
  onCheck: () => void;
}

function Choice({ file, onChange, isBusy, isChecking, onCheck }: ChoiceProps) {
  const { t } = useWords();
  const sites = useSites().data?.sites ?? [];
  const isTooLarge = file.text.length > TEXT_MAX;
  return (
    <Card className="p-4">
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          onCheck();
        }}
      >
        <FileField
          label={t("importFile")}
          accept=".csv,.tsv,.txt,.yml,.yaml,text/csv"
          onFile={async (chosen) =>
            onChange({ format: formatOf(chosen.name), text: readText(await chosen.arrayBuffer()) })
          }
        />
        <TextField
          label={t("importText")}
          value={file.text}
          rows={6}
          spellCheck={false}
          onChange={(event) => onChange({ text: event.target.value })}
          hint={t("importColumns")}
          className="font-mono text-xs"
        />
        <div className="flex flex-wrap items-end gap-3">
          <SelectField
            label={t("importFormat")}
            value={file.format}
            onChange={(event) => onChange({ format: event.target.value === "frigate" ? "frigate" : "csv" })}
          >
            {(["csv", "frigate"] as const).map((one) => (
              <option key={one} value={one}>
                {t(`formats.${one}`)}
              </option>
            ))}
          </SelectField>
          {sites.length > 1 && (
            <SelectField
              label={t("importSite")}
              value={file.site ?? ""}
              onChange={(event) => onChange({ site: event.target.value || null })}
            >
              {sites.map((site, place) => (
                <option key={site.name} value={place === 0 ? "" : site.name}>
                  {site.name}
                </option>
              ))}
            </SelectField>
          )}
          <Button asChild variant="ghost" className="h-9">
            <a href={`data:text/csv;charset=utf-8,${encodeURIComponent(EXAMPLE_CSV)}`} download="cameras.csv">
              <Download aria-hidden="true" />
              {t("importTemplate")}
            </a>
          </Button>
          <Button type="submit" className="ml-auto" disabled={isBusy || isTooLarge || file.text.trim() === ""}>
            <FileUp aria-hidden="true" />
            {t(isChecking ? "importChecking" : "importCheck")}
          </Button>
        </div>
        {isTooLarge && <FormProblem text={t("importTooLarge")} />}
      </form>
    </Card>
  );
}

function Problems({ answer }: { answer: ImportAnswer }) {
  const { t } = useWords();
  const headings = [t("importWhere"), t("importColumn"), t("importMessage")];
  const parts = [
    { name: "problems", title: t("importProblems", { count: answer.problems.length }), found: answer.problems },
    { name: "notes", title: t("importNotes"), found: answer.notes },
  ].filter((part) => part.found.length > 0);
  return parts.map(({ name, title, found }) => (
    <section key={name}>
      <h2 className={name === "problems" ? "mb-2 font-semibold text-severity-3" : "mb-2 font-semibold"}>{title}</h2>
      <Table label={title} headings={headings}>
        {found.map((one) => (
          <Row key={`${one.where} ${one.column} ${one.message}`}>
            <Cell column={0} lead={false} className="tabular-nums">
              {one.line ?? one.where}
            </Cell>
            <Cell column={1} className="font-mono">
              {one.column ?? "–"}
            </Cell>
            <Cell column={2}>{one.message}</Cell>
          </Row>
        ))}
      </Table>
    </section>
  ));
}

const ACTION_LOOKS: Record<ImportAnswer["cameras"][number]["action"], string> = {
  add: "border-accent/40 text-accent",
  added: "border-live/40 text-live",
  same: "text-quiet",
  differs: "border-severity-2/40 text-severity-2",
  failed: "border-severity-3/50 text-severity-3",
};

function Found({ answer }: { answer: ImportAnswer }) {
  const { t } = useWords();
  if (answer.cameras.length === 0) return <p className="text-quiet text-sm">{t("importNothing")}</p>;
  return (
    <section>
      <h2 className="mb-2 font-semibold">{t("importPreview")}</h2>
      <Table label={t("importPreview")} headings={[t("importWhere"), t("id"), t("state"), t("importMessage")]}>
        {answer.cameras.map((one) => (
          <Row key={`${one.where} ${one.camera_id}`}>
            <Cell column={0} lead={false} className="tabular-nums">
              {one.where}
            </Cell>
            <Cell column={1} className="font-mono">
              {one.camera_id}
            </Cell>
            <Cell column={2}>
              <Badge className={ACTION_LOOKS[one.action]}>{t(`importAction.${one.action}`)}</Badge>
            </Cell>
            <Cell column={3}>{one.message || "–"}</Cell>
          </Row>
        ))}
      </Table>
    </section>
  );
}

interface ConfirmProps {
  answer: ImportAnswer;
  isBusy: boolean;
  onImport: (skipBad: boolean) => void;
}

function Confirm({ answer, isBusy, onImport }: ConfirmProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const [skipBad, setSkipBad] = useState(false);
  const count = answer.cameras.filter((one) => one.action === "add").length;
  const isBad = answer.problems.length > 0;
  return (
    <div className="mt-5 flex flex-wrap items-center justify-end gap-4">
      {isBad && count > 0 && (
        <CheckField
          label={t("importSkip")}
          checked={skipBad}
          onChange={(event) => setSkipBad(event.target.checked)}
        />
      )}
      <Button disabled={isBusy || count === 0 || (isBad && !skipBad)} onClick={() => onImport(skipBad)}>
        {isBusy ? t("importing") : count > 0 ? t("importDo", { count }) : shared("action.add")}
      </Button>
    </div>
  );
}
