import { useState } from "react";
import { useNotifyPreview } from "@/api/deliveries";
import { useEvents } from "@/api/queries";
import type { PreviewedReceiver } from "@/api/types";
import { shortMoment } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { Loaded } from "./loaded";
import { Badge } from "./ui/badge";
import { Card } from "./ui/card";
import { SelectField } from "./ui/field";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("deliveries", words);
const EVERY_EVENT = {};
const CHOICES_MAX = 20;

/** Tries the rules on an event that happened: who would be told, with what words, and why others would not. */
export function NotifyPreview() {
  const { t, i18n } = useWords();
  const { eventTitle } = usePhrases();
  const now = useNowBy(60_000);
  const events = useEvents(EVERY_EVENT).data?.events.slice(0, CHOICES_MAX);
  const [wanted, setWanted] = useState("");
  const uuid = wanted || (events?.[0]?.event_uuid ?? "");
  return (
    <section aria-labelledby="preview-title" className="grid gap-3">
      <h2 id="preview-title" className="font-semibold text-lg">
        {t("preview")}
      </h2>
      <p className="max-w-3xl text-quiet text-sm">{t("previewLead")}</p>
      {events?.length === 0 && <p className="text-quiet text-sm">{t("noEvents")}</p>}
      {events && events.length > 0 && (
        <>
          <div className="max-w-md">
            <SelectField label={t("previewEvent")} value={uuid} onChange={(event) => setWanted(event.target.value)}>
              {events.map((event) => (
                <option key={event.event_uuid} value={event.event_uuid}>
                  {`${shortMoment(event.start_at, now, i18n.language)} ${eventTitle(event)} · ${event.camera_name}`}
                </option>
              ))}
            </SelectField>
          </div>
          <PreviewOf eventUuid={uuid} />
        </>
      )}
    </section>
  );
}

/** What each receiver would get of one event. */
export function PreviewOf({ eventUuid }: { eventUuid: string }) {
  const { t } = useWords();
  const query = useNotifyPreview(eventUuid);
  return (
    <Loaded query={query} waiting={<Skeleton className="h-28 w-full rounded-xl" />}>
      {({ receivers }) =>
        receivers.length === 0 ? (
          <p className="text-quiet text-sm">{t("previewNone")}</p>
        ) : (
          <ul aria-label={t("previewList")} className="grid gap-3 lg:grid-cols-2">
            {receivers.map((one) => (
              <li key={one.receiver_uuid}>
                <Previewed receiver={one} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Previewed({ receiver }: { receiver: PreviewedReceiver }) {
  const { t, i18n } = useWords();
  const { tagLabel } = usePhrases();
  const now = useNowBy(60_000);
  const isSent = receiver.verdict === "send";
  const notes = [
    tagLabel(receiver.why),
    receiver.rule ? t("byRule", { name: receiver.rule }) : "",
    receiver.until === null ? "" : t("untilTime", { time: shortMoment(receiver.until, now, i18n.language) }),
    receiver.held_back > 0 ? t("heldBack", { count: receiver.held_back }) : "",
  ];
  return (
    <Card className="grid h-full content-start gap-2 p-3">
      <div className="flex flex-wrap items-center gap-2">
        <h3 className="min-w-0 truncate font-medium text-sm">{receiver.name}</h3>
        <Badge className={isSent ? "border-live/40 text-live" : "text-quiet"}>{t(isSent ? "send" : "notSent")}</Badge>
      </div>
      <p className="text-quiet text-xs">{notes.filter(Boolean).join(" · ")}</p>
      <blockquote lang={receiver.language} className="border-l-2 pl-3 text-sm">
        <p className="font-medium">{receiver.title}</p>
        {receiver.lines.map((line) => (
          <p key={line} className="text-quiet [overflow-wrap:anywhere]">
            {line}
          </p>
        ))}
      </blockquote>
    </Card>
  );
}
