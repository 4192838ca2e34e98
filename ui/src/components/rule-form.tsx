import { useState } from "react";
import { useSites } from "@/api/camera";
import { useAddRule, useChangeRule, useReceivers } from "@/api/deliveries";
import { useCameras } from "@/api/queries";
import type { NotifyRule, NotifyRuleAsked } from "@/api/types";
import { differing, EVERY_DAY, weekday } from "@/display/rules";
import { usePhrases } from "@/hooks/use-phrases";
import { useSeverityText } from "@/hooks/use-severity-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/rules";
import { tell } from "@/shell/notices";
import { DialogForm } from "./dialog-form";
import { CheckField, Field, SelectField } from "./ui/field";

const useWords = addWords("rules", words);

type Chosen = readonly string[] | null;
const orAll = (chosen: Chosen) => (chosen && chosen.length > 0 ? [...chosen] : null);

interface Props {
  rule: NotifyRule | null;
  /** Before it, everything notable was told to everybody. */
  isFirst: boolean;
  onClose: () => void;
}

export function RuleForm({ rule, isFirst, onClose }: Props) {
  const { t } = useWords();
  const severityText = useSeverityText();
  const { primaryEvents, tagLabel } = usePhrases();
  const sites = useSites().data?.sites ?? [];
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const receivers = useReceivers().data?.receivers ?? [];
  const [add, change] = [useAddRule(), useChangeRule()];
  const [kinds, setKinds] = useState<Chosen>(rule?.primary_events ?? null);
  const [siteNames, setSiteNames] = useState<Chosen>(rule?.sites ?? null);
  const [cameraIds, setCameraIds] = useState<Chosen>(rule?.camera_ids ?? null);
  const [to, setTo] = useState<Chosen>(rule?.receivers ?? null);
  const [quiet, setQuiet] = useState<NotifyRuleAsked["quiet"]>(rule?.quiet ?? null);
  const done = {
    onSuccess: () => {
      tell({ text: t("saved") });
      onClose();
    },
  };

  function send(sent: Record<string, string>): void {
    const body: NotifyRuleAsked = {
      name: sent.name ?? "",
      enabled: sent.enabled === "on",
      min_severity: Number(sent.severity ?? 0),
      primary_events: orAll(kinds),
      sites: orAll(siteNames),
      camera_ids: orAll(cameraIds),
      receivers: to ? [...to] : null,
      quiet: quiet ?? null,
    };
    if (rule) change.mutate({ uuid: rule.rule_uuid, body: differing(rule, body) }, done);
    else add.mutate(body, done);
  }

  return (
    <DialogForm sending={[add, change]} onClose={onClose} onSend={send}>
      {isFirst && <p className="rounded-lg border border-severity-2/40 px-3 py-2 text-sm">{t("firstOne")}</p>}
      <Field label={t("name")} name="name" required maxLength={128} defaultValue={rule?.name ?? ""} />
      <SelectField label={t("minSeverity")} name="severity" defaultValue={rule?.min_severity ?? 1}>
        {([0, 1, 2, 3] as const).map((step) => (
          <option key={step} value={step}>
            {step === 0 ? t("everything") : severityText(step)}
          </option>
        ))}
      </SelectField>
      <Choice
        label={t("kinds")}
        options={primaryEvents
          .filter(({ id }) => id !== "none")
          .map((one) => ({ value: one.id, text: tagLabel(one) }))}
        chosen={kinds}
        onChange={setKinds}
      />
      {(sites.length > 1 || siteNames) && (
        <Choice
          label={t("sites")}
          options={sites.map(({ name }) => ({ value: name, text: name }))}
          chosen={siteNames}
          onChange={setSiteNames}
        />
      )}
      <Choice
        label={t("cameras")}
        options={cameras.map(({ camera_id, name }) => ({ value: camera_id, text: name }))}
        chosen={cameraIds}
        onChange={setCameraIds}
      />
      <Choice
        label={t("to")}
        options={receivers.map(({ receiver_uuid, name }) => ({ value: receiver_uuid, text: name }))}
        chosen={to}
        onChange={setTo}
        {...(to?.length === 0 ? { hint: t("nobodyHint") } : {})}
      />
      <QuietHours quiet={quiet} onChange={setQuiet} />
      <CheckField label={t("enabled")} name="enabled" defaultChecked={rule?.enabled ?? true} />
    </DialogForm>
  );
}

type Quiet = NotifyRuleAsked["quiet"];

function QuietHours({ quiet, onChange }: { quiet: Quiet; onChange: (quiet: Quiet) => void }) {
  const { t, i18n } = useWords();
  const severityText = useSeverityText();
  const days = quiet?.days ?? EVERY_DAY;
  return (
    <fieldset className="grid gap-3">
      <legend className="mb-1 font-medium text-sm">{t("quiet")}</legend>
      <CheckField
        label={t("quietOn")}
        hint={t("quietHint")}
        checked={quiet != null}
        onChange={(event) =>
          onChange(
            event.target.checked ? { from: "22:00", to: "06:00", days: [...EVERY_DAY], through_severity: 3 } : null,
          )
        }
      />
      {quiet && (
        <>
          <div className="grid grid-cols-2 gap-3">
            <Field
              label={t("quietFrom")}
              type="time"
              required
              value={quiet.from}
              onChange={(event) => onChange({ ...quiet, from: event.target.value })}
            />
            <Field
              label={t("quietTo")}
              type="time"
              required
              value={quiet.to}
              onChange={(event) => onChange({ ...quiet, to: event.target.value })}
            />
          </div>
          <fieldset className="flex flex-wrap gap-x-4 gap-y-2">
            <legend className="mb-1 text-quiet text-xs">{t("quietDays")}</legend>
            {EVERY_DAY.map((day) => (
              <CheckField
                key={day}
                label={weekday(day, i18n.language)}
                checked={days.includes(day)}
                // Hours that begin on no day are none.
                disabled={days.length === 1 && days.includes(day)}
                onChange={(event) =>
                  onChange({
                    ...quiet,
                    days: EVERY_DAY.filter((one) => (one === day ? event.target.checked : days.includes(one))),
                  })
                }
              />
            ))}
          </fieldset>
          <SelectField
            label={t("through")}
            value={quiet.through_severity ?? ""}
            onChange={(event) =>
              onChange({ ...quiet, through_severity: event.target.value ? Number(event.target.value) : null })
            }
          >
            <option value="">{t("throughNone")}</option>
            {([3, 2, 1] as const).map((step) => (
              <option key={step} value={step}>
                {severityText(step)}
              </option>
            ))}
          </SelectField>
        </>
      )}
    </fieldset>
  );
}

interface ChoiceProps {
  label: string;
  hint?: string;
  options: readonly { value: string; text: string }[];
  /** Null: all of them. */
  chosen: Chosen;
  onChange: (chosen: Chosen) => void;
}

function Choice({ label, hint, options, chosen, onChange }: ChoiceProps) {
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
      {hint && <p className="text-quiet text-xs">{hint}</p>}
    </fieldset>
  );
}
