import { BellOff, BellRing } from "lucide-react";
import { useState } from "react";
import { useSites } from "@/api/camera";
import { useAddSnooze, useEndSnooze, useReceivers, useSnoozes } from "@/api/deliveries";
import { useCameras, useSession } from "@/api/queries";
import type { Snooze, SnoozeAsked } from "@/api/types";
import { shortMoment } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { tell } from "@/shell/notices";
import { DialogForm } from "./dialog-form";
import { EmptyState } from "./empty-state";
import { LoadedTable } from "./loaded-table";
import { Button } from "./ui/button";
import { Dialog } from "./ui/dialog";
import { Field, SelectField } from "./ui/field";
import { Cell, Row } from "./ui/table";

const useWords = addWords("deliveries", words);

const MINUTE_SEC = 60;
const HOUR_SEC = 3600;
const DAY_SEC = 86_400;
const DURATIONS = [
  15 * MINUTE_SEC,
  HOUR_SEC,
  4 * HOUR_SEC,
  8 * HOUR_SEC,
  DAY_SEC,
  3 * DAY_SEC,
  7 * DAY_SEC,
  30 * DAY_SEC,
];

/** What is silent now, until when, and silencing more. */
export function Snoozes() {
  const { t } = useWords();
  const query = useSnoozes();
  const { data: session } = useSession();
  const mayChange = session?.permissions.includes("manage_cameras") ?? false;
  const [adding, setAdding] = useState(false);
  const headings = [t("what"), t("receiver"), t("until"), t("reasonHead"), t("by"), ""];
  const add = mayChange && (
    <Button onClick={() => setAdding(true)}>
      <BellOff aria-hidden="true" />
      {t("addSnooze")}
    </Button>
  );
  return (
    <>
      <div className="mb-3 flex min-h-10 items-center justify-between gap-3 max-sm:flex-wrap">
        <p className="max-w-3xl text-quiet text-sm">{t("snoozeLead")}</p>
        {query.data?.snoozes.length !== 0 && add}
      </div>
      <LoadedTable
        query={{ ...query, data: query.data?.snoozes }}
        label={t("snoozeList")}
        headings={headings}
        waitingRows={2}
        empty={
          <EmptyState Icon={BellRing} title={t("noSnoozes")} lead={t("noSnoozesLead")}>
            {add}
          </EmptyState>
        }
      >
        {(snooze) => <SnoozeRow key={snooze.snooze_uuid} snooze={snooze} mayEnd={mayChange} />}
      </LoadedTable>
      <SnoozeDialog open={adding} onClose={() => setAdding(false)} />
    </>
  );
}

function SnoozeRow({ snooze, mayEnd }: { snooze: Snooze; mayEnd: boolean }) {
  const { t, i18n } = useWords();
  const now = useNowBy(30_000);
  const failed = useTellFailure();
  const [end, add] = [useEndSnooze(), useAddSnooze()];
  const what = snooze.camera_id
    ? t("cameraNamed", { name: snooze.camera_id })
    : snooze.site
      ? t("siteNamed", { name: snooze.site })
      : t("wholeHouse");
  const again = () => {
    const { site, camera_id, receiver_uuid, reason, until } = snooze;
    // A camera has its site already.
    const place = camera_id ? { camera_id } : site ? { site } : {};
    const duration_sec = Math.max(1, Math.round((until - Date.now()) / 1000));
    add.mutate({ ...place, ...(receiver_uuid ? { receiver_uuid } : {}), reason, duration_sec }, { onError: failed });
  };
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {what}
      </Cell>
      <Cell column={1}>{snooze.receiver_name ?? t("everything")}</Cell>
      <Cell column={2} className="tabular-nums">
        {shortMoment(snooze.until, now, i18n.language)}
      </Cell>
      <Cell column={3}>{snooze.reason || "–"}</Cell>
      <Cell column={4}>{snooze.by ?? "–"}</Cell>
      <Cell column={5}>
        {mayEnd && (
          <div className="flex sm:justify-end">
            <Button
              variant="outline"
              size="small"
              disabled={end.isPending}
              aria-label={`${t("endSnooze")}: ${what}`}
              onClick={() =>
                end.mutate(snooze.snooze_uuid, {
                  onSuccess: () => tell({ text: t("ended"), undo: again }),
                  onError: failed,
                })
              }
            >
              {t("endSnooze")}
            </Button>
          </div>
        )}
      </Cell>
    </Row>
  );
}

interface DialogProps {
  open: boolean;
  onClose: () => void;
  /** The camera that it is about, where that is clear. */
  cameraId?: string;
}

export function SnoozeDialog({ open, onClose, cameraId }: DialogProps) {
  const { t } = useWords();
  return (
    <Dialog open={open} onClose={onClose} title={t("addSnooze")}>
      {open && <SnoozeForm onClose={onClose} {...(cameraId ? { cameraId } : {})} />}
    </Dialog>
  );
}

function SnoozeForm({ onClose, cameraId }: Omit<DialogProps, "open">) {
  const { t, i18n } = useWords();
  const { data: session } = useSession();
  const add = useAddSnooze();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const sites = useSites().data?.sites ?? [];
  const [site, setSite] = useState("");
  const inSite = site ? cameras.filter((camera) => camera.site === site) : cameras;

  function send(sent: Record<string, string>): void {
    const camera_id = cameraId ?? sent.camera;
    const asked: SnoozeAsked = {
      duration_sec: Number(sent.duration),
      reason: sent.reason?.trim() ?? "",
      ...(camera_id ? { camera_id } : site ? { site } : {}),
      ...(sent.receiver ? { receiver_uuid: sent.receiver } : {}),
    };
    add.mutate(asked, {
      onSuccess: ({ until }) => {
        tell({ text: t("snoozed", { time: shortMoment(until, Date.now(), i18n.language) }) });
        onClose();
      },
    });
  }

  return (
    <DialogForm sending={[add]} onClose={onClose} action={t("addSnooze")} onSend={send}>
      <p className="text-quiet text-sm">{t("snoozeLead")}</p>
      {cameraId ? (
        <p className="font-medium text-sm">{t("cameraNamed", { name: cameraId })}</p>
      ) : (
        <div className="grid gap-4 sm:grid-cols-2">
          {sites.length > 1 && (
            <SelectField label={t("snoozeSite")} value={site} onChange={(event) => setSite(event.target.value)}>
              <option value="">{t("everything")}</option>
              {sites.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </SelectField>
          )}
          <SelectField label={t("snoozeCamera")} name="camera">
            <option value="">{t("everything")}</option>
            {inSite.map((camera) => (
              <option key={camera.camera_id} value={camera.camera_id}>
                {camera.name}
              </option>
            ))}
          </SelectField>
        </div>
      )}
      {session?.permissions.includes("manage_deliveries") && <ReceiverSelect />}
      <SelectField label={t("duration")} name="duration" defaultValue={HOUR_SEC}>
        {DURATIONS.map((sec) => (
          <option key={sec} value={sec}>
            {sec % DAY_SEC === 0
              ? t("days", { count: sec / DAY_SEC })
              : sec % HOUR_SEC === 0
                ? t("hours", { count: sec / HOUR_SEC })
                : t("minutes", { count: sec / MINUTE_SEC })}
          </option>
        ))}
      </SelectField>
      <Field label={t("reason")} name="reason" maxLength={255} autoComplete="off" />
    </DialogForm>
  );
}

function ReceiverSelect() {
  const { t } = useWords();
  const receivers = useReceivers().data?.receivers ?? [];
  return (
    <SelectField label={t("snoozeReceiver")} name="receiver">
      <option value="">{t("everything")}</option>
      {receivers.map((one) => (
        <option key={one.receiver_uuid} value={one.receiver_uuid}>
          {one.name}
        </option>
      ))}
    </SelectField>
  );
}
