import { ArrowDown, ArrowUp, ListFilter, Pencil, Plus, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import {
  useAddRule,
  useChangeRule,
  useOrderRules,
  useReceivers,
  useRemoveRule,
  useRules,
  useTryReceiver,
} from "@/api/deliveries";
import { useCameras } from "@/api/queries";
import type { NotifyRule, NotifyRuleAsked } from "@/api/types";
import { severityOf } from "@/display/severity";
import { useTellFailure } from "@/hooks/use-tell";
import { useTellTrial } from "@/hooks/use-tell-trial";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { tell } from "@/shell/notices";
import { ConfirmDialog } from "./confirm-dialog";
import { EmptyState } from "./empty-state";
import { sentValues } from "./entry-page";
import { SentProblem } from "./form-problem";
import { Loaded } from "./loaded";
import { Badge } from "./ui/badge";
import { Button } from "./ui/button";
import { Dialog, DialogButtons } from "./ui/dialog";
import { CheckField, Field, SelectField } from "./ui/field";
import { Cell, Row, SkeletonRows, Table } from "./ui/table";

const useWords = addWords("deliveries", words);

/** A rule as it is sent, by how it is shown. */
export function asked(rule: NotifyRule): NotifyRuleAsked {
  const { rule_uuid: _, gone: __, created_at: ___, updated_at: ____, ...rest } = rule;
  return rest;
}

/** The order with one rule moved. */
export function moved(uuids: readonly string[], place: number, by: number): string[] {
  const next = [...uuids];
  const [one] = next.splice(place, 1);
  if (one !== undefined) next.splice(place + by, 0, one);
  return next;
}

export function Rules() {
  const { t } = useWords();
  const query = useRules();
  const order = useOrderRules();
  const failed = useTellFailure();
  const [editing, setEditing] = useState<NotifyRule | "new" | null>(null);
  const headings = [t("name"), t("minSeverity"), t("ruleCameras"), t("ruleReceivers"), t("quiet"), ""];
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-3xl text-quiet text-sm">{t("rulesLead")}</p>
        <Button onClick={() => setEditing("new")}>
          <Plus aria-hidden="true" />
          {t("addRule")}
        </Button>
      </div>
      <Loaded
        query={query}
        waiting={
          <Table label={t("ruleList")} headings={headings} busy>
            <SkeletonRows columns={headings.length} rows={3} />
          </Table>
        }
      >
        {({ rules }) =>
          rules.length === 0 ? (
            <EmptyState Icon={ListFilter} title={t("noRules")} lead={t("noRulesLead")} />
          ) : (
            <Table label={t("ruleList")} headings={headings}>
              {rules.map((rule, place) => (
                <RuleRow
                  key={rule.rule_uuid}
                  rule={rule}
                  onEdit={() => setEditing(rule)}
                  onMove={(by) =>
                    order.mutate(
                      moved(
                        rules.map((one) => one.rule_uuid),
                        place,
                        by,
                      ),
                      { onError: failed },
                    )
                  }
                  first={place === 0}
                  last={place === rules.length - 1}
                />
              ))}
            </Table>
          )
        }
      </Loaded>
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "addRule" : "changeRule")}
      >
        {editing !== null && <RuleForm rule={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
      </Dialog>
    </>
  );
}

interface RowProps {
  rule: NotifyRule;
  onEdit: () => void;
  onMove: (by: number) => void;
  first: boolean;
  last: boolean;
}

function RuleRow({ rule, onEdit, onMove, first, last }: RowProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const [remove, add] = [useRemoveRule(), useAddRule()];
  const [removing, setRemoving] = useState(false);
  const { name } = rule;
  const receivers = useReceivers().data?.receivers ?? [];
  const receiverNames = rule.receivers?.map(
    (one) => receivers.find((known) => known.receiver_uuid === one)?.name ?? one,
  );
  const [trial, failed, tellTrial] = [useTryReceiver(), useTellFailure(), useTellTrial()];

  /** One after the other: a receiver that hangs must not hide what became of the others. */
  async function tryAll(): Promise<void> {
    const named = receivers.filter((one) => one.enabled && (rule.receivers?.includes(one.receiver_uuid) ?? true));
    if (named.length === 0) tell({ text: t("testNobody", { name }), failed: true });
    for (const one of named) {
      await trial.mutateAsync(one.receiver_uuid).then((delivery) => tellTrial(one.name, delivery), failed);
    }
  }

  const severity = shared(`severity.s${severityOf(rule.min_severity)}`);
  const small = { variant: "ghost", size: "icon", className: "size-8" } as const;
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {name}
        {!rule.enabled && <Badge className="ml-2 text-quiet">{t("off")}</Badge>}
        {rule.gone > 0 && <span className="block text-severity-2 text-xs">{t("gone", { count: rule.gone })}</span>}
      </Cell>
      <Cell column={1}>
        {rule.min_severity === 0 ? t("everything") : shared("severity.atLeast", { name: severity })}
      </Cell>
      <Cell column={2}>{rule.camera_ids?.join(", ") ?? rule.sites?.join(", ") ?? t("everything")}</Cell>
      <Cell column={3}>
        {receiverNames ? (receiverNames.length === 0 ? t("nobody") : receiverNames.join(", ")) : t("everything")}
      </Cell>
      <Cell column={4}>{rule.quiet ? t("quietText", { from: rule.quiet.from, to: rule.quiet.to }) : "–"}</Cell>
      <Cell column={5}>
        <div className="flex flex-wrap gap-1 sm:justify-end">
          <Button
            {...small}
            disabled={trial.isPending}
            title={t("testRule")}
            aria-label={`${t("testRule")}: ${name}`}
            onClick={() => void tryAll()}
          >
            <Send aria-hidden="true" />
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
        <ConfirmDialog
          open={removing}
          onClose={() => setRemoving(false)}
          title={t("removeRule")}
          lead={t("removeRuleLead", { name })}
          action={shared("action.remove")}
          onConfirm={async () => {
            await remove.mutateAsync(rule.rule_uuid);
            tell({ text: t("removed", { name }), undo: () => add.mutate(asked(rule)) });
          }}
        />
      </Cell>
    </Row>
  );
}

function RuleForm({ rule, onClose }: { rule: NotifyRule | null; onClose: () => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const receivers = useReceivers().data?.receivers ?? [];
  const [add, change] = [useAddRule(), useChangeRule()];
  const [cameraIds, setCameraIds] = useState<readonly string[] | null>(rule?.camera_ids ?? null);
  const [to, setTo] = useState<readonly string[] | null>(rule?.receivers ?? null);
  const done = {
    onSuccess: () => {
      tell({ text: t("saved") });
      onClose();
    },
  };

  function send(sent: Record<string, string>): void {
    const quiet =
      sent.from && sent.until ? { days: [0, 1, 2, 3, 4, 5, 6], through_severity: 3, ...rule?.quiet } : null;
    const body: NotifyRuleAsked = {
      ...(rule ? asked(rule) : {}),
      name: sent.name ?? "",
      enabled: sent.enabled === "on",
      min_severity: Number(sent.severity ?? 0),
      camera_ids: cameraIds && cameraIds.length > 0 ? [...cameraIds] : null,
      receivers: to ? [...to] : null,
      quiet: quiet ? { ...quiet, from: sent.from ?? "", to: sent.until ?? "" } : null,
    };
    if (rule) change.mutate({ uuid: rule.rule_uuid, body }, done);
    else add.mutate(body, done);
  }

  return (
    <form className="grid gap-4" onSubmit={(event) => send(sentValues(event))}>
      <Field label={t("name")} name="name" required maxLength={128} defaultValue={rule?.name ?? ""} />
      <SelectField label={t("minSeverity")} name="severity" defaultValue={rule?.min_severity ?? 1}>
        {([0, 1, 2, 3] as const).map((step) => (
          <option key={step} value={step}>
            {step === 0 ? t("everything") : shared("severity.atLeast", { name: shared(`severity.s${step}`) })}
          </option>
        ))}
      </SelectField>
      <Choice
        label={t("ruleCameras")}
        options={cameras.map(({ camera_id, name }) => ({ value: camera_id, text: name }))}
        chosen={cameraIds}
        onChange={setCameraIds}
      />
      <Choice
        label={t("ruleReceivers")}
        options={receivers.map(({ receiver_uuid, name }) => ({ value: receiver_uuid, text: name }))}
        chosen={to}
        onChange={setTo}
      />
      <div className="grid grid-cols-2 gap-3">
        <Field label={t("quietFrom")} name="from" type="time" defaultValue={rule?.quiet?.from ?? ""} />
        <Field label={t("quietTo")} name="until" type="time" defaultValue={rule?.quiet?.to ?? ""} />
      </div>
      <CheckField label={t("on")} name="enabled" defaultChecked={rule?.enabled ?? true} />
      <SentProblem error={add.error ?? change.error} />
      <DialogButtons>
        <Button variant="outline" onClick={onClose}>
          {shared("action.cancel")}
        </Button>
        <Button type="submit" disabled={add.isPending || change.isPending}>
          {shared("action.save")}
        </Button>
      </DialogButtons>
    </form>
  );
}

interface ChoiceProps {
  label: string;
  options: readonly { value: string; text: string }[];
  /** Null: all of them. */
  chosen: readonly string[] | null;
  onChange: (chosen: readonly string[] | null) => void;
}

function Choice({ label, options, chosen, onChange }: ChoiceProps) {
  const { t } = useWords();
  return (
    <fieldset className="grid gap-2">
      <legend className="mb-1 font-medium text-sm">{label}</legend>
      <CheckField
        label={t("everything")}
        checked={chosen === null}
        onChange={(event) => onChange(event.target.checked ? null : [])}
      />
      {chosen !== null && (
        <div className="grid max-h-40 gap-1.5 overflow-y-auto rounded-md border p-2">
          {options.map(({ value, text }) => (
            <CheckField
              key={value}
              label={text}
              checked={chosen.includes(value)}
              onChange={(event) =>
                onChange(event.target.checked ? [...chosen, value] : chosen.filter((one) => one !== value))
              }
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}
