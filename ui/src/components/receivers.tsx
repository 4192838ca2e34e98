import { Pencil, Plus, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAddReceiver, useChangeReceiver, useReceivers, useRemoveReceiver } from "@/api/deliveries";
import type { Receiver, ReceiverKind } from "@/api/types";
import {
  keptConfig,
  RECEIVER_FIELDS,
  RECEIVER_KINDS,
  type ReceiverField,
  receiverValues,
} from "@/display/receiver-kinds";
import { useTellFailure } from "@/hooks/use-tell";
import { useTroubleText } from "@/hooks/use-trouble-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { tell } from "@/shell/notices";
import { Age } from "./age";
import { ConfirmDialog } from "./confirm-dialog";
import { DialogForm } from "./dialog-form";
import { EmptyState } from "./empty-state";
import { LoadedTable } from "./loaded-table";
import { TrialDialog, useTrial } from "./trial";
import { Badge } from "./ui/badge";
import { Button } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { CheckField, Field, SelectField, TextField } from "./ui/field";
import { Cell, Row } from "./ui/table";

const useWords = addWords("deliveries", words);

export function Receivers() {
  const { t } = useWords();
  const query = useReceivers();
  const [editing, setEditing] = useState<Receiver | "new" | null>(null);
  const headings = [t("name"), t("kind"), t("state"), t("lastOk"), t("lastError"), ""];
  const add = (
    <Button onClick={() => setEditing("new")}>
      <Plus aria-hidden="true" />
      {t("addReceiver")}
    </Button>
  );
  return (
    <>
      <div className="mb-3 flex min-h-10 justify-end">{(query.data?.receivers.length ?? 0) > 0 && add}</div>
      <LoadedTable
        query={{ ...query, data: query.data?.receivers }}
        label={t("receiverList")}
        headings={headings}
        waitingRows={3}
        empty={
          <EmptyState Icon={Send} title={t("noReceivers")} lead={t("noReceiversLead")}>
            {add}
          </EmptyState>
        }
      >
        {(receiver) => (
          <ReceiverRow key={receiver.receiver_uuid} receiver={receiver} onEdit={() => setEditing(receiver)} />
        )}
      </LoadedTable>
      <Dialog
        open={editing !== null}
        onClose={() => setEditing(null)}
        title={t(editing === "new" ? "addReceiver" : "changeReceiver")}
      >
        {editing !== null && (
          <ReceiverForm receiver={editing === "new" ? null : editing} onClose={() => setEditing(null)} />
        )}
      </Dialog>
    </>
  );
}

function ReceiverRow({ receiver, onEdit }: { receiver: Receiver; onEdit: () => void }) {
  const troubleText = useTroubleText();
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const failed = useTellFailure();
  const trial = useTrial();
  const [change, remove] = [useChangeReceiver(), useRemoveReceiver()];
  const [removing, setRemoving] = useState(false);
  const { name, receiver_uuid: uuid, enabled } = receiver;
  const turn = () =>
    change.mutate(
      { uuid, change: { enabled: !enabled } },
      {
        onSuccess: () =>
          tell({
            text: t(enabled ? "turnedOff" : "turnedOn", { name }),
            undo: () => change.mutate({ uuid, change: { enabled } }),
          }),
        onError: failed,
      },
    );
  return (
    <Row>
      <Cell column={0} className="font-medium xl:min-w-32">
        {name}
      </Cell>
      <Cell column={1}>{t(`receiverKind.${receiver.kind}`)}</Cell>
      <Cell column={2}>
        <Badge className={enabled ? "border-live/40 text-live" : "text-quiet"}>{t(enabled ? "on" : "off")}</Badge>
      </Cell>
      <Cell column={3}>
        {receiver.last_ok_at === null ? (
          <span className="text-quiet">{t("never")}</span>
        ) : (
          <Age at={receiver.last_ok_at} />
        )}
      </Cell>
      <Cell column={4}>
        {receiver.last_error ? (
          <span className="text-severity-2">
            {troubleText(receiver.last_error)}
            {receiver.last_error_at !== null && (
              <Age at={receiver.last_error_at} className="block text-quiet text-xs" />
            )}
          </span>
        ) : (
          "–"
        )}
      </Cell>
      <Cell column={5}>
        <div className="flex gap-1 max-sm:flex-wrap sm:justify-end">
          <Button
            variant="outline"
            size="small"
            disabled={trial.isPending}
            aria-label={`${t("test")}: ${name}`}
            onClick={() => trial.begin([receiver])}
          >
            {t("test")}
          </Button>
          <Button
            variant="ghost"
            size="small"
            aria-label={`${t(enabled ? "turnOff" : "turnOn")}: ${name}`}
            onClick={turn}
          >
            {t(enabled ? "turnOff" : "turnOn")}
          </Button>
          <Button
            variant="ghost"
            size="icon"
            className="size-8"
            aria-label={`${shared("action.change")}: ${name}`}
            onClick={onEdit}
          >
            <Pencil aria-hidden="true" />
          </Button>
          <Button
            variant="ghost"
            size="icon"
            className="size-8"
            aria-label={`${shared("action.remove")}: ${name}`}
            onClick={() => setRemoving(true)}
          >
            <Trash2 aria-hidden="true" />
          </Button>
        </div>
        <TrialDialog name={name} trial={trial} />
        <ConfirmDialog
          open={removing}
          onClose={() => setRemoving(false)}
          title={t("removeReceiver")}
          lead={t("removeReceiverLead", { name })}
          action={shared("action.remove")}
          typed={name}
          onConfirm={async () => {
            await remove.mutateAsync(uuid);
            tell({ text: t("removed", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

function ReceiverForm({ receiver, onClose }: { receiver: Receiver | null; onClose: () => void }) {
  const { t, i18n } = useWords();
  const [kind, setKind] = useState<ReceiverKind>(receiver?.kind ?? "slack");
  const [add, change] = [useAddReceiver(), useChangeReceiver()];
  const done = {
    onSuccess: () => {
      tell({ text: t("saved") });
      onClose();
    },
  };

  function send(sent: Record<string, string>): void {
    const { config, secrets } = receiverValues(kind, sent);
    const shared = {
      name: sent.name ?? "",
      language: sent.language === "en" ? ("en" as const) : ("ja" as const),
      hourly_cap: sent.hourly_cap?.trim() ? Number(sent.hourly_cap) : null,
      config: { ...keptConfig(kind, receiver?.config ?? {}), ...config },
      secrets,
    };
    if (receiver) change.mutate({ uuid: receiver.receiver_uuid, change: shared }, done);
    else add.mutate({ ...shared, kind, enabled: true }, done);
  }

  return (
    <DialogForm sending={[add, change]} onClose={onClose} onSend={send} autoComplete="off">
      {!receiver && (
        <SelectField label={t("kind")} value={kind} onChange={(event) => setKind(event.target.value as ReceiverKind)}>
          {RECEIVER_KINDS.map((one) => (
            <option key={one} value={one}>
              {t(`receiverKind.${one}`)}
            </option>
          ))}
        </SelectField>
      )}
      <Field label={t("name")} name="name" required maxLength={128} defaultValue={receiver?.name ?? ""} />
      {RECEIVER_FIELDS[kind].map((field) => (
        <KindField key={`${kind} ${field.name}`} field={field} receiver={receiver} />
      ))}
      <SelectField label={t("language")} name="language" defaultValue={receiver?.language ?? i18n.language}>
        <option value="ja">日本語</option>
        <option value="en">English</option>
      </SelectField>
      <Field
        label={t("hourlyCap")}
        name="hourly_cap"
        type="number"
        min={1}
        defaultValue={receiver?.hourly_cap ?? ""}
      />
    </DialogForm>
  );
}

function KindField({ field, receiver }: { field: ReceiverField; receiver: Receiver | null }) {
  const { t } = useWords();
  const { name, type } = field;
  const label = t(`field.${name as "url"}`);
  const known = receiver?.config?.[name];
  if (type === "switch") {
    const on = typeof known === "boolean" ? known : (field.on ?? false);
    return <CheckField label={label} name={name} defaultChecked={on} />;
  }
  const isSet = field.secret && receiver?.secrets?.[name]?.is_set === true;
  const given = {
    label,
    name,
    required: Boolean(field.required) && !isSet,
    ...(isSet ? { hint: t("secretKept") } : {}),
  };
  if (type === "choice") {
    return (
      <SelectField label={label} name={name} defaultValue={known == null ? field.choices?.[0] : String(known)}>
        {field.choices?.map((one) => (
          <option key={one} value={one}>
            {t(`choice.${one as "tls"}`)}
          </option>
        ))}
      </SelectField>
    );
  }
  const value = Array.isArray(known) ? known.join(" ") : known == null ? "" : String(known);
  if (type === "long") return <TextField {...given} defaultValue={field.secret ? "" : value} />;
  return (
    <Field
      {...given}
      type={field.secret ? "password" : type === "number" ? "number" : "text"}
      autoComplete={field.secret ? "new-password" : "off"}
      defaultValue={field.secret ? "" : value}
    />
  );
}
