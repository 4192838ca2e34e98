import { Archive, Download, Film, FolderOpen, Lock, LockOpen, Pencil, SearchX, X } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Link, useParams } from "react-router";
import { framePicture } from "@/api/addresses";
import { caseExport, useAddItem, useAddNote, useCase, useCaseItems, useChangeCase, useRemoveItem } from "@/api/cases";
import { download, saveFile } from "@/api/download";
import { asProblem } from "@/api/problem";
import { useSearch } from "@/api/search";
import type { CaseChange, CaseDetail, CaseItem } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { DialogForm } from "@/components/dialog-form";
import { EmptyState } from "@/components/empty-state";
import { sentValues } from "@/components/entry-page";
import { SentProblem } from "@/components/form-problem";
import { Loaded } from "@/components/loaded";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { useProblemText } from "@/components/problem-notice";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Dialog } from "@/components/ui/dialog";
import { Field, TextField } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import { bytesText } from "@/display/sizes";
import { dateAndTime } from "@/display/times";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cases";
import { tell } from "@/shell/notices";
import { CaseBadges } from "./cases";

const useWords = addWords("cases", words);
const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(100%,13rem),1fr))] gap-3";

export function CasePage() {
  const { uuid = "" } = useParams();
  const { t } = useWords();
  const query = useCase(uuid);
  usePageTitle(query.data?.title ?? t("title"));
  if (query.error && asProblem(query.error).status === 404) {
    return (
      <EmptyState page Icon={SearchX} title={t("notFoundTitle")} lead={t("notFoundLead")}>
        <Button asChild variant="outline">
          <Link to="/cases">{t("toList")}</Link>
        </Button>
      </EmptyState>
    );
  }
  return (
    <Loaded query={query} waiting={<Waiting />}>
      {(found) => (
        <>
          <PageHead
            title={found.title}
            back={{ to: "/cases", text: t("toList") }}
            beside={<CaseBadges one={found} />}
            actions={<Actions found={found} />}
          />
          <div className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_22rem]">
            <Evidence found={found} />
            <aside className="grid content-start gap-4">
              <Export found={found} />
              <Notes found={found} />
            </aside>
          </div>
        </>
      )}
    </Loaded>
  );
}

function Actions({ found }: { found: CaseDetail }) {
  const { t } = useWords();
  const [asking, setAsking] = useState<"rename" | "close" | null>(null);
  const { mutate, mutateAsync } = useChangeCase(found.case_uuid);
  const problemText = useProblemText();
  const change = (wanted: CaseChange, text: string, back: CaseChange) =>
    mutate(wanted, {
      onSuccess: () => tell({ text, undo: () => mutate(back) }),
      onError: (error) => tell({ text: problemText(error), failed: true }),
    });
  return (
    <>
      <Button variant="outline" size="small" onClick={() => setAsking("rename")}>
        <Pencil aria-hidden="true" />
        {t("rename")}
      </Button>
      {found.hold ? (
        <Button variant="outline" size="small" onClick={() => change({ hold: false }, t("unheld"), { hold: true })}>
          <LockOpen aria-hidden="true" />
          {t("holdOff")}
        </Button>
      ) : (
        <Button
          variant="outline"
          size="small"
          title={t("holdHint")}
          onClick={() => change({ hold: true }, t("held"), { hold: false })}
        >
          <Lock aria-hidden="true" />
          {t("holdOn")}
        </Button>
      )}
      {found.state === "open" ? (
        <Button variant="outline" size="small" onClick={() => setAsking("close")}>
          <Archive aria-hidden="true" />
          {t("close")}
        </Button>
      ) : (
        <Button
          variant="outline"
          size="small"
          onClick={() => change({ state: "open" }, t("reopened"), { state: "closed" })}
        >
          <FolderOpen aria-hidden="true" />
          {t("reopen")}
        </Button>
      )}
      <Dialog open={asking === "rename"} onClose={() => setAsking(null)} title={t("rename")}>
        {asking === "rename" && <Rename found={found} onClose={() => setAsking(null)} />}
      </Dialog>
      <ConfirmDialog
        open={asking === "close"}
        onClose={() => setAsking(null)}
        title={t("closeTitle")}
        lead={t("closeLead")}
        action={t("close")}
        onConfirm={async () => {
          await mutateAsync({ state: "closed" });
          tell({ text: t("wasClosed"), undo: () => mutate({ state: "open" }) });
        }}
      />
    </>
  );
}

function Rename({ found, onClose }: { found: CaseDetail; onClose: () => void }) {
  const { t } = useWords();
  const change = useChangeCase(found.case_uuid);
  return (
    <DialogForm
      sending={[change]}
      onClose={onClose}
      onSend={({ title = "" }) => {
        change.mutate(
          { title },
          {
            onSuccess: () => {
              onClose();
              tell({ text: t("renamed"), undo: () => change.mutate({ title: found.title }) });
            },
          },
        );
      }}
    >
      <Field label={t("name")} name="title" required maxLength={255} defaultValue={found.title} autoComplete="off" />
    </DialogForm>
  );
}

function Evidence({ found }: { found: CaseDetail }) {
  const { t } = useWords();
  const query = useCaseItems(found.case_uuid);
  const items = query.data?.pages.flatMap((page) => page.items);
  // Events have a picture of their own, which the list of what is in a case does not name.
  const filter = useMemo(() => ({ case: found.case_uuid }), [found.case_uuid]);
  const events = useSearch(filter).data?.pages.flatMap((page) => page.events) ?? [];
  const [leaving, setLeaving] = useState<CaseItem | null>(null);
  const [remove, add] = [useRemoveItem(found.case_uuid), useAddItem()];
  const canRemove = found.state === "open" && !found.hold;
  return (
    <section aria-labelledby="evidence-title" className="min-w-0">
      <h2 id="evidence-title" className="mb-3 font-semibold">
        {t("evidence")} <span className="font-normal text-quiet text-sm">{t("items", { count: found.items })}</span>
      </h2>
      <Loaded query={{ ...query, data: items }} waiting={<Skeleton className="h-64 w-full rounded-xl" />}>
        {(shown) =>
          shown.length === 0 ? (
            <EmptyState Icon={FolderOpen} title={t("evidence")} lead={t("noEvidence")}>
              <Button asChild variant="outline">
                <Link to="/events">{t("toEvents")}</Link>
              </Button>
            </EmptyState>
          ) : (
            <ul className={GRID}>
              {shown.map((item) => (
                <li key={`${item.kind} ${item.uuid}`}>
                  <Item
                    item={item}
                    event={events.find((one) => one.event_uuid === item.uuid)}
                    onRemove={canRemove ? () => setLeaving(item) : null}
                  />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      <More query={query} />
      <ConfirmDialog
        open={leaving !== null}
        onClose={() => setLeaving(null)}
        title={t("removeTitle")}
        lead={t("removeLead")}
        action={t("removeItem")}
        onConfirm={async () => {
          if (!leaving) return;
          await remove.mutateAsync(leaving);
          const { kind, uuid } = leaving;
          tell({ text: t("removed"), undo: () => add.mutate({ caseUuid: found.case_uuid, item: { kind, uuid } }) });
        }}
      />
    </section>
  );
}

interface ItemProps {
  item: CaseItem;
  event: { best_frame_uuid: string | null; primary_event: string; issue: CaseEventIssue } | undefined;
  onRemove: (() => void) | null;
}
type CaseEventIssue = Parameters<ReturnType<typeof usePhrases>["eventTitle"]>[0]["issue"];

function Item({ item, event, onRemove }: ItemProps) {
  const { t, i18n } = useWords();
  const { eventTitle } = usePhrases();
  const time = dateAndTime(item.happened_at, i18n.language);
  const name = event ? eventTitle(event) : t(item.kind);
  const frame = item.kind === "frame" ? item.uuid : (event?.best_frame_uuid ?? null);
  const body: ReactNode = (
    <>
      <p className="flex items-center gap-1.5 truncate font-medium text-sm">
        {item.kind === "clip" && <Film aria-hidden="true" className="size-4 shrink-0" />}
        {name}
      </p>
      <p className="truncate text-quiet text-xs">{item.camera_name}</p>
      <p className="text-quiet text-xs tabular-nums">{time}</p>
    </>
  );
  return (
    <Card className="relative h-full overflow-hidden">
      <Still
        src={frame && !item.gone ? framePicture(frame, "infer") : null}
        alt={`${name}, ${item.camera_name}, ${time}`}
      />
      <div className="grid gap-0.5 p-3">
        {item.gone || item.kind === "frame" ? (
          body
        ) : (
          <Link to={`/events/${item.uuid}`} className="grid gap-0.5 rounded underline-offset-4 hover:underline">
            {body}
          </Link>
        )}
        {item.gone && <Badge className="mt-1 justify-self-start text-severity-2">{t("gone")}</Badge>}
      </div>
      {onRemove && (
        <Button
          variant="outline"
          size="icon"
          className="absolute top-2 right-2 size-8"
          aria-label={`${t("removeItem")}: ${name}, ${item.camera_name}, ${time}`}
          title={t("removeItem")}
          onClick={onRemove}
        >
          <X aria-hidden="true" />
        </Button>
      )}
    </Card>
  );
}

function Export({ found }: { found: CaseDetail }) {
  const { t, i18n } = useWords();
  const problemText = useProblemText();
  const [bytes, setBytes] = useState<number | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);

  async function begin(): Promise<void> {
    stop.current = new AbortController();
    setBytes(0);
    try {
      const { file } = await download(caseExport(found.case_uuid), setBytes, stop.current.signal);
      if (!file) return;
      saveFile(file, `case-${found.case_uuid}.zip`);
      tell({ text: t("exported", { size: bytesText(file.size, i18n.language) }) });
    } catch (error) {
      const cause = problemText(error);
      tell({ text: t("exportFailed", { cause, code: asProblem(error).code }), failed: true });
    } finally {
      setBytes(null);
    }
  }

  return (
    <Card className="grid gap-2 p-4">
      {bytes === null ? (
        <Button variant="outline" onClick={() => void begin()}>
          <Download aria-hidden="true" />
          {t("export")}
        </Button>
      ) : (
        <div className="flex items-center gap-2">
          <output className="flex-1 text-sm tabular-nums">
            {t("exporting", { size: bytesText(bytes, i18n.language) })}
          </output>
          <Button variant="outline" size="small" onClick={() => stop.current?.abort()}>
            {t("stop")}
          </Button>
        </div>
      )}
      <p className="text-quiet text-xs">{t("exportHint")}</p>
    </Card>
  );
}

function Notes({ found }: { found: CaseDetail }) {
  const { t, i18n } = useWords();
  const add = useAddNote(found.case_uuid);
  return (
    <Card className="grid gap-3 p-4">
      <h2 className="font-semibold text-sm">{t("notes")}</h2>
      {found.note_list.length === 0 && <p className="text-quiet text-sm">{t("noNotes")}</p>}
      <ul className="grid gap-3">
        {found.note_list.map((note) => (
          <li key={`${note.at} ${note.body}`} className="grid gap-1 border-l-2 pl-3">
            <p className="whitespace-pre-wrap [overflow-wrap:anywhere] text-sm">{note.body}</p>
            <p className="text-quiet text-xs" title={dateAndTime(note.at, i18n.language)}>
              {note.by}, <Age at={note.at} />
            </p>
          </li>
        ))}
      </ul>
      <form
        className="grid gap-2"
        onSubmit={(event) => {
          const form = event.currentTarget;
          add.mutate(sentValues(event).note ?? "", { onSuccess: () => form.reset() });
        }}
      >
        <TextField label={t("note")} name="note" required maxLength={10_000} hint={t("noteHint")} />
        <SentProblem error={add.error} />
        <Button type="submit" variant="outline" size="small" className="justify-self-end" disabled={add.isPending}>
          {t("addNote")}
        </Button>
      </form>
    </Card>
  );
}

function Waiting() {
  return (
    <div aria-busy="true" className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_22rem]">
      <div className="grid content-start gap-3">
        <Skeleton className="h-8 w-64" />
        <Skeleton className="h-64 w-full rounded-xl" />
      </div>
      <Skeleton className="h-80 w-full rounded-xl" />
    </div>
  );
}
