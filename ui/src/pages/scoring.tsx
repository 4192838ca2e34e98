import { Plus, SearchX, Sheet as SheetIcon } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { useAddSheet, useScoringOffer, useScoringRuns, useScoringSheets, useUploadSheet } from "@/api/scoring";
import type { ScoringOffer, ScoringRun, ScoringSheet } from "@/api/types";
import { Age } from "@/components/age";
import { DialogForm } from "@/components/dialog-form";
import { EmptyState } from "@/components/empty-state";
import { Loaded } from "@/components/loaded";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field, SelectField, TextField } from "@/components/ui/field";
import { FileField } from "@/components/ui/file-field";
import { Cell, Row } from "@/components/ui/table";
import { moneyText, rowsDone } from "@/display/scoring";
import { bytesText, percentText } from "@/display/sizes";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/scoring";

export const useScoringWords = addWords("scoring", words);

export function ScoringPage() {
  const { t } = useScoringWords();
  usePageTitle(t("title"));
  const offer = useScoringOffer();
  const [adding, setAdding] = useState(false);
  const add = (
    <Button onClick={() => setAdding(true)}>
      <Plus aria-hidden="true" />
      {t("add")}
    </Button>
  );
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} actions={offer.data?.is_configured && add} />
      <Loaded query={offer} waiting={null}>
        {(known) =>
          known.is_configured ? (
            <>
              <Sheets />
              <Dialog open={adding} onClose={() => setAdding(false)} title={t("add")}>
                {adding && <NewSheet offer={known} onClose={() => setAdding(false)} />}
              </Dialog>
            </>
          ) : (
            <EmptyState Icon={SheetIcon} title={t("offTitle")} lead={t("offLead")} />
          )
        }
      </Loaded>
      <Runs />
    </>
  );
}

export function ScoringNotFound() {
  const { t } = useScoringWords();
  return (
    <EmptyState page Icon={SearchX} title={t("notFoundTitle")} lead={t("notFoundLead")}>
      <Button asChild variant="outline">
        <Link to="/scoring">{t("toList")}</Link>
      </Button>
    </EmptyState>
  );
}

function Sheets() {
  const { t } = useScoringWords();
  const query = useScoringSheets();
  const headings = [t("name"), t("kind"), t("state"), t("when")];
  return (
    <section aria-label={t("sheets")} className="mb-8">
      <h2 className="mb-2 font-semibold">{t("sheets")}</h2>
      <LoadedTable
        query={{ ...query, data: query.data?.pages.flatMap((page) => page.sheets) }}
        label={t("sheets")}
        headings={headings}
        empty={<EmptyState Icon={SheetIcon} title={t("sheetsEmptyTitle")} lead={t("sheetsEmptyLead")} />}
      >
        {(one) => <SheetRow key={one.sheet_uuid} one={one} />}
      </LoadedTable>
      <More query={query} />
    </section>
  );
}

function SheetRow({ one }: { one: ScoringSheet }) {
  const { t } = useScoringWords();
  return (
    <Row className="hover:bg-raised/50">
      <Cell column={0}>
        <Link
          to={`/scoring/sheets/${one.sheet_uuid}`}
          className="break-all font-medium underline-offset-4 hover:underline"
        >
          {one.name}
        </Link>
      </Cell>
      <Cell column={1}>{t(`kinds.${one.kind}`)}</Cell>
      <Cell column={2}>
        <Badge className={one.state === "refused" ? "border-severity-3/50 text-severity-3" : "text-quiet"}>
          {t(`states.${one.state}`)}
        </Badge>
      </Cell>
      <Cell column={3}>
        <Age at={one.created_at} />
      </Cell>
    </Row>
  );
}

function Runs() {
  const { t } = useScoringWords();
  const query = useScoringRuns();
  const headings = [t("name"), t("state"), t("progress"), t("model"), t("cost"), t("when")];
  return (
    <section aria-label={t("runs")}>
      <h2 className="mb-2 font-semibold">{t("runs")}</h2>
      <LoadedTable
        query={{ ...query, data: query.data?.pages.flatMap((page) => page.runs) }}
        label={t("runs")}
        headings={headings}
        empty={<p className="text-quiet text-sm">{t("runsEmpty")}</p>}
      >
        {(one) => <RunRow key={one.run_uuid} one={one} />}
      </LoadedTable>
      <More query={query} />
    </section>
  );
}

function RunRow({ one }: { one: ScoringRun }) {
  const { t, i18n } = useScoringWords();
  return (
    <Row className="hover:bg-raised/50">
      <Cell column={0}>
        <Link
          to={`/scoring/runs/${one.run_uuid}`}
          className="break-all font-medium underline-offset-4 hover:underline"
        >
          {one.brought?.name ?? one.sheet}
        </Link>
      </Cell>
      <Cell column={1}>
        <RunBadge status={one.status} />
      </Cell>
      <Cell column={2}>{t("chunksDone", rowsDone(one))}</Cell>
      <Cell column={3}>{one.model}</Cell>
      <Cell column={4}>{moneyText(one.cost_micro / 1_000_000, i18n.language)}</Cell>
      <Cell column={5}>
        <Age at={one.created_at} />
      </Cell>
    </Row>
  );
}

export function RunBadge({ status }: { status: ScoringRun["status"] }) {
  const { t } = useScoringWords();
  const tone =
    status === "running"
      ? "border-live/40 text-live"
      : status === "failed"
        ? "border-severity-3/50 text-severity-3"
        : "text-quiet";
  return <Badge className={tone}>{t(`status.${status}`)}</Badge>;
}

type Kind = "file" | "google" | "folder";

function NewSheet({ offer, onClose }: { offer: ScoringOffer; onClose: () => void }) {
  const { t, i18n } = useScoringWords();
  const navigate = useNavigate();
  const [upload, add] = [useUploadSheet(), useAddSheet()];
  const [kind, setKind] = useState<Kind>("file");
  const [file, setFile] = useState<File | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const kinds: Kind[] = ["file"];
  if (offer.has_google) kinds.push("google");
  if (offer.files.length > 0) kinds.push("folder");
  const open = (sheet: ScoringSheet) => void navigate(`/scoring/sheets/${sheet.sheet_uuid}`);

  function send(sent: Record<string, string>): void {
    const asked = {
      form: sent.form === "anchors" ? ("anchors" as const) : ("numeric" as const),
      instructions: sent.instructions ?? "",
    };
    if (kind !== "file") {
      add.mutate({ ...asked, kind, name: sent.name ?? "", size_bytes: 0 }, { onSuccess: open });
    } else if (file) {
      setShare(0);
      upload.mutate(
        { file, partBytes: offer.part_bytes, asked, onShare: setShare },
        { onSuccess: open, onError: () => setShare(null) },
      );
    }
  }

  return (
    <DialogForm
      sending={[upload, add]}
      onClose={onClose}
      action={t("send")}
      disabled={kind === "file" && !file}
      onSend={send}
    >
      {kinds.length > 1 && (
        <SelectField label={t("kind")} value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {kinds.map((one) => (
            <option key={one} value={one}>
              {t(`kinds.${one}`)}
            </option>
          ))}
        </SelectField>
      )}
      {kind === "file" && (
        <FileField
          label={t("file")}
          onFile={setFile}
          accept={offer.endings.join(",")}
          hint={t("fileHint", {
            endings: offer.endings.join(" "),
            size: bytesText(offer.upload_max_bytes, i18n.language),
          })}
        />
      )}
      {kind === "google" && <Field label={t("link")} name="name" required maxLength={255} hint={t("linkHint")} />}
      {kind === "folder" && (
        <SelectField label={t("serverFile")} name="name">
          {offer.files.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </SelectField>
      )}
      <SelectField label={t("form")} name="form">
        <option value="numeric">{t("forms.numeric")}</option>
        <option value="anchors">{t("forms.anchors")}</option>
      </SelectField>
      <TextField label={t("instructions")} name="instructions" maxLength={10_000} />
      {share !== null && (
        <output className="block text-quiet text-sm tabular-nums">
          {t("sending", { share: percentText(share, i18n.language) })}
        </output>
      )}
    </DialogForm>
  );
}
