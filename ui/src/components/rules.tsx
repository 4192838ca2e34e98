import { ArrowDown, ArrowUp, ListFilter, Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAddRule, useOrderRules, useReceivers, useRemoveRule, useRules } from "@/api/deliveries";
import { useCameraName } from "@/api/queries";
import type { NotifyRule } from "@/api/types";
import { asked, EVERY_DAY, moved, weekday } from "@/display/rules";
import { severityOf } from "@/display/severity";
import { usePhrases } from "@/hooks/use-phrases";
import { useSeverityText } from "@/hooks/use-severity-text";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/rules";
import { tell } from "@/shell/notices";
import { ConfirmDialog } from "./confirm-dialog";
import { EmptyState } from "./empty-state";
import { LoadedTable } from "./loaded-table";
import { RuleForm } from "./rule-form";
import { TrialDialog, useTrial } from "./trial";
import { Badge } from "./ui/badge";
import { Button } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { Cell, Row } from "./ui/table";

const useWords = addWords("rules", words);

export function Rules() {
  const { t } = useWords();
  const query = useRules();
  const order = useOrderRules();
  const addition = useAddRule();
  const failed = useTellFailure();
  const [editing, setEditing] = useState<NotifyRule | "new" | null>(null);
  const headings = [t("name"), t("about"), t("to"), t("quiet"), ""];
  const known = query.data?.rules ?? [];
  const uuids = known.map((one) => one.rule_uuid);
  const add = (
    <Button onClick={() => setEditing("new")}>
      <Plus aria-hidden="true" />
      {t("add")}
    </Button>
  );

  /** Back where it was: a rule's place is part of what it says. */
  async function restore(rule: NotifyRule, others: readonly string[], place: number): Promise<void> {
    try {
      const { rule_uuid } = await addition.mutateAsync(asked(rule));
      if (place < others.length) {
        await order.mutateAsync([...others.slice(0, place), rule_uuid, ...others.slice(place)]);
      }
    } catch (error) {
      failed(error);
    }
  }

  return (
    <>
      <div className="mb-3 flex min-h-10 items-center justify-between gap-3 max-sm:flex-wrap">
        <p className="max-w-3xl text-quiet text-sm">
          {t("lead")} {t("leadNone")}
        </p>
        {known.length > 0 && add}
      </div>
      <LoadedTable
        query={{ ...query, data: query.data?.rules }}
        label={t("list")}
        headings={headings}
        waitingRows={3}
        empty={
          <EmptyState Icon={ListFilter} title={t("none")} lead={t("noneLead")}>
            {add}
          </EmptyState>
        }
      >
        {(rule, place) => {
          const others = uuids.filter((one) => one !== rule.rule_uuid);
          return (
            <RuleRow
              key={rule.rule_uuid}
              rule={rule}
              onEdit={() => setEditing(rule)}
              onMove={(by) => order.mutate(moved(uuids, place, by), { onError: failed })}
              onRestore={() => void restore(rule, others, place)}
              first={place === 0}
              last={place === uuids.length - 1}
            />
          );
        }}
      </LoadedTable>
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "add" : "change")}
      >
        {editing !== null && (
          <RuleForm
            rule={editing === "new" ? null : editing}
            isFirst={editing === "new" && known.every((rule) => !rule.enabled)}
            onClose={() => setEditing(null)}
          />
        )}
      </Dialog>
    </>
  );
}

interface RowProps {
  rule: NotifyRule;
  onEdit: () => void;
  onMove: (by: number) => void;
  onRestore: () => void;
  first: boolean;
  last: boolean;
}

function RuleRow({ rule, onEdit, onMove, onRestore, first, last }: RowProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const remove = useRemoveRule();
  const [removing, setRemoving] = useState(false);
  const { name } = rule;
  const receivers = useReceivers().data?.receivers ?? [];
  const receiverNames = rule.receivers?.map(
    (one) => receivers.find((known) => known.receiver_uuid === one)?.name ?? one,
  );
  const trial = useTrial();
  const named = receivers.filter((one) => one.enabled && (rule.receivers?.includes(one.receiver_uuid) ?? true));
  const small = { variant: "ghost", size: "icon", className: "size-8" } as const;
  return (
    <Row>
      <Cell column={0} className="font-medium xl:min-w-32">
        {name}
        {!rule.enabled && <Badge className="ml-2 text-quiet">{t("off")}</Badge>}
        {rule.gone > 0 && <span className="block text-severity-2 text-xs">{t("gone", { count: rule.gone })}</span>}
      </Cell>
      <Cell column={1} className="sm:[word-break:keep-all]">
        <About rule={rule} />
      </Cell>
      <Cell column={2}>
        {receiverNames ? (receiverNames.length === 0 ? t("nobody") : receiverNames.join(", ")) : t("everything")}
      </Cell>
      <Cell column={3}>{rule.quiet ? <Quiet quiet={rule.quiet} /> : "–"}</Cell>
      <Cell column={4}>
        <div className="flex items-center gap-1 max-sm:flex-wrap sm:justify-end">
          <Button
            variant="outline"
            size="small"
            disabled={trial.isPending}
            aria-label={`${t("test")}: ${name}`}
            onClick={() => trial.begin(named)}
          >
            {t("test")}
          </Button>
          <Button {...small} disabled={first} aria-label={`${t("moveUp")}: ${name}`} onClick={() => onMove(-1)}>
            <ArrowUp aria-hidden="true" />
          </Button>
          <Button {...small} disabled={last} aria-label={`${t("moveDown")}: ${name}`} onClick={() => onMove(1)}>
            <ArrowDown aria-hidden="true" />
          </Button>
          <Button {...small} aria-label={`${shared("action.change")}: ${name}`} onClick={onEdit}>
            <Pencil aria-hidden="true" />
          </Button>
          <Button {...small} aria-label={`${shared("action.remove")}: ${name}`} onClick={() => setRemoving(true)}>
            <Trash2 aria-hidden="true" />
          </Button>
        </div>
        <TrialDialog name={name} trial={trial} />
        <ConfirmDialog
          open={removing}
          onClose={() => setRemoving(false)}
          title={t("remove")}
          lead={t("removeLead", { name })}
          action={shared("action.remove")}
          onConfirm={async () => {
            await remove.mutateAsync(rule.rule_uuid);
            tell({ text: t("removed", { name }), undo: onRestore });
          }}
        />
      </Cell>
    </Row>
  );
}

/** What a rule is about: severity, then whatever else narrows it. */
function About({ rule }: { rule: NotifyRule }) {
  const { t } = useWords();
  const severityText = useSeverityText();
  const { eventPhrase } = usePhrases();
  const cameraName = useCameraName();
  const step = severityOf(rule.min_severity);
  const narrowed = [
    rule.primary_events?.map(eventPhrase),
    rule.sites,
    rule.camera_ids?.map((one) => cameraName(one) ?? one),
  ].filter((one) => one != null);
  if (step === 0 && narrowed.length === 0) return t("everything");
  return (
    <>
      {step > 0 && <span className="block">{severityText(step)}</span>}
      {narrowed.map((names) => (
        <span key={names.join()} className="block">
          {names.join(", ")}
        </span>
      ))}
    </>
  );
}

function Quiet({ quiet }: { quiet: NonNullable<NotifyRule["quiet"]> }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const { from, to, days = EVERY_DAY, through_severity: through } = quiet;
  const notes = [
    days.length === EVERY_DAY.length ? "" : days.map((day) => weekday(day, i18n.language)).join(" "),
    through == null ? "" : t("throughText", { name: shared(`severity.s${severityOf(through)}`) }),
  ];
  return (
    <>
      <span className="whitespace-nowrap">{t("quietText", { from, to })}</span>
      <span className="block text-quiet text-xs">{notes.filter(Boolean).join(" · ")}</span>
    </>
  );
}
