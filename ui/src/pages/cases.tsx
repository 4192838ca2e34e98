import { BriefcaseBusiness, Lock, Plus } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { type CaseState, useCases, useCreateCase } from "@/api/cases";
import type { Case } from "@/api/types";
import { Age } from "@/components/age";
import { DialogForm } from "@/components/dialog-form";
import { EmptyState } from "@/components/empty-state";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog } from "@/components/ui/dialog";
import { Field, TextField } from "@/components/ui/field";
import { Cell, Row } from "@/components/ui/table";
import { ChoiceTabs } from "@/components/ui/tabs";
import { useAddress } from "@/hooks/use-address";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cases";

const useWords = addWords("cases", words);

export function CasesPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { address } = useAddress();
  const [creating, setCreating] = useState(false);
  const view = address.get("state") ?? "open";
  const state: CaseState | null = view === "all" ? null : view === "closed" ? "closed" : "open";
  const query = useCases(state);
  const cases = query.data?.pages.flatMap((page) => page.cases);
  const headings = [t("name"), t("state"), t("items"), t("by"), t("updated")];
  const create = (
    <Button onClick={() => setCreating(true)}>
      <Plus aria-hidden="true" />
      {t("create")}
    </Button>
  );
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} actions={create} />
      <div className="mb-4">
        <ChoiceTabs
          label={t("state")}
          name="state"
          choices={(["open", "closed", "all"] as const).map((value) => ({ value, text: t(value) }))}
        />
      </div>
      <LoadedTable
        query={{ ...query, data: cases }}
        label={t("list")}
        headings={headings}
        empty={
          state === "closed" ? (
            <EmptyState Icon={BriefcaseBusiness} title={t("emptyStateTitle")} lead={t("emptyStateLead")} />
          ) : (
            <EmptyState Icon={BriefcaseBusiness} title={t("emptyTitle")} lead={t("emptyLead")}>
              {create}
            </EmptyState>
          )
        }
      >
        {(one) => <CaseRow key={one.case_uuid} one={one} />}
      </LoadedTable>
      <More query={query} />
      <Dialog open={creating} onClose={() => setCreating(false)} title={t("create")}>
        {creating && <NewCase onClose={() => setCreating(false)} />}
      </Dialog>
    </>
  );
}

function CaseRow({ one }: { one: Case }) {
  const { t } = useWords();
  return (
    <Row className="hover:bg-raised/50">
      <Cell column={0}>
        <Link to={`/cases/${one.case_uuid}`} className="font-medium underline-offset-4 hover:underline">
          {one.title}
        </Link>
      </Cell>
      <Cell column={1}>
        <CaseBadges one={one} />
      </Cell>
      <Cell column={2}>{t("items", { count: one.items })}</Cell>
      <Cell column={3}>
        {one.created_by}, <Age at={one.created_at} />
      </Cell>
      <Cell column={4}>
        <Age at={one.updated_at} />
      </Cell>
    </Row>
  );
}

export function CaseBadges({ one }: { one: Pick<Case, "state" | "hold"> }) {
  const { t } = useWords();
  return (
    <span className="inline-flex flex-wrap gap-1">
      <Badge className={one.state === "open" ? "border-live/40 text-live" : "text-quiet"}>{t(one.state)}</Badge>
      {one.hold && (
        <Badge className="border-severity-2/40 text-severity-2">
          <Lock aria-hidden="true" />
          {t("hold")}
        </Badge>
      )}
    </span>
  );
}

function NewCase({ onClose }: { onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const create = useCreateCase();
  return (
    <DialogForm
      sending={[create]}
      onClose={onClose}
      action={t("create")}
      onSend={({ title = "", note = "" }) => {
        create.mutate(
          { title, note: note.trim() || null },
          { onSuccess: (made) => void navigate(`/cases/${made.case_uuid}`) },
        );
      }}
    >
      <Field label={t("name")} name="title" required maxLength={255} autoComplete="off" />
      <TextField label={t("noteOptional")} name="note" maxLength={10_000} hint={t("noteHint")} />
    </DialogForm>
  );
}
