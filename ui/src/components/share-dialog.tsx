import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useAddShare } from "@/api/shares";
import type { Share } from "@/api/types";
import { dateAndTime } from "@/display/times";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/shares";
import { CopiedText } from "./copied-text";
import { DialogForm } from "./dialog-form";
import { Button } from "./ui/button";
import { Dialog, DialogButtons } from "./ui/dialog";
import { Field, SelectField } from "./ui/field";

const useWords = addWords("shares", words);
const DAYS = [1, 7, 30];
const DAYS_USUAL = 7;
const DAY_SEC = 86_400;
const ENDLESS = "endless";

/** Asks how long an event is to be open to whoever has the address, then shows the address, once. */
export function ShareDialog({ uuid, onClose }: { uuid: string; onClose: () => void }) {
  const { t } = useWords();
  const add = useAddShare();
  return (
    <Dialog open onClose={onClose} title={t("dialogTitle")}>
      {add.data ? (
        <Shared share={add.data.share} url={add.data.url} onClose={onClose} />
      ) : (
        <DialogForm
          sending={[add]}
          onClose={onClose}
          action={t("make")}
          onSend={({ days = ENDLESS, note = "" }) =>
            add.mutate({
              ...{ kind: "event", uuid, note: note.trim() },
              ttl_sec: days === ENDLESS ? null : Number(days) * DAY_SEC,
            })
          }
        >
          <p className="text-quiet text-sm">{t("dialogLead")}</p>
          <SelectField label={t("howLong")} name="days" defaultValue={DAYS_USUAL}>
            {DAYS.map((days) => (
              <option key={days} value={days}>
                {t("days", { count: days })}
              </option>
            ))}
            <option value={ENDLESS}>{t("endless")}</option>
          </SelectField>
          <Field label={t("noteOptional")} name="note" maxLength={500} autoComplete="off" hint={t("noteHint")} />
        </DialogForm>
      )}
    </Dialog>
  );
}

function Shared({ share, url, onClose }: { share: Share; url: string; onClose: () => void }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const { expires_at } = share;
  return (
    <div className="grid gap-4">
      <p className="text-sm">{t("once")}</p>
      <CopiedText text={url} label={t("address")} />
      <p className="text-quiet text-sm">
        {expires_at === null ? t("openEndless") : t("openUntil", { time: dateAndTime(expires_at, i18n.language) })}{" "}
        <Link to="/settings/shares" className="text-accent underline-offset-4 hover:underline">
          {t("toList")}
        </Link>
      </p>
      <DialogButtons>
        <Button onClick={onClose}>{shared("action.close")}</Button>
      </DialogButtons>
    </div>
  );
}
