import { useState } from "react";
import { Link } from "react-router";
import { useEventDeliveries } from "@/api/deliveries";
import { type Gathered, gathered, reasonOf } from "@/display/deliveries";
import { useTroubleText } from "@/hooks/use-trouble-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import * as listWords from "@/i18n/pages/eventlist";
import { Age } from "./age";
import { Loaded } from "./loaded";
import { PreviewOf } from "./notify-preview";
import { Badge } from "./ui/badge";
import { Button } from "./ui/button";
import { Card } from "./ui/card";
import { cn } from "./ui/class-names";
import { Dialog } from "./ui/dialog";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("deliveries", words);
const useListWords = addWords("eventlist", listWords);

/** What was sent about an event, to whom, and what became of it. For people who may manage deliveries. */
export default function EventDeliveries({ eventUuid }: { eventUuid: string }) {
  const { t } = useWords();
  const { t: own } = useListWords();
  const query = useEventDeliveries(eventUuid);
  const [previewing, setPreviewing] = useState(false);
  return (
    <Card className="grid gap-3 p-4">
      <div className="flex items-center justify-between gap-2">
        <h2 className="font-semibold text-sm">{own("told")}</h2>
        <Button variant="ghost" size="small" onClick={() => setPreviewing(true)}>
          {t("preview")}
        </Button>
      </div>
      <Loaded query={query} waiting={<Skeleton className="h-10 w-full" />}>
        {({ deliveries: all, next_before }) => {
          // A notification that went well is seen by the messages that it became.
          const deliveries = all.filter((one) => one.kind !== "notify" || one.status !== "done");
          return deliveries.length === 0 ? (
            <p className="text-quiet text-sm">{own("toldNobody")}</p>
          ) : (
            <>
              <ul aria-label={own("told")} className="grid gap-2">
                {gathered(deliveries).map((one) => (
                  <Told key={one.delivery.delivery_uuid} {...one} />
                ))}
              </ul>
              {next_before && (
                <Link to="/deliveries?state=all" className="text-accent text-sm underline-offset-4 hover:underline">
                  {own("toldMore")}
                </Link>
              )}
            </>
          );
        }}
      </Loaded>
      <Dialog open={previewing} onClose={() => setPreviewing(false)} title={t("preview")}>
        {previewing && <PreviewOf eventUuid={eventUuid} />}
      </Dialog>
    </Card>
  );
}

function Told({ delivery, count }: Gathered) {
  const { t, i18n } = useWords();
  const troubleText = useTroubleText();
  const told = reasonOf(delivery);
  const said =
    told && i18n.exists(`reasons.${told}`, { ns: "deliveries" })
      ? t(`reasons.${told as "snoozed"}`)
      : troubleText(told);
  const isDead = delivery.status === "dead";
  return (
    <li className="text-sm">
      <div className="flex items-center gap-2">
        <span className="min-w-0 truncate">{delivery.receiver_name ?? t(`kinds.${delivery.kind}`)}</span>
        <Badge className={cn("shrink-0", isDead ? "border-severity-3/50 text-severity-3" : "text-quiet")}>
          {t(`status.${delivery.status}`)}
          {count > 1 && <span className="tabular-nums">×{count}</span>}
        </Badge>
      </div>
      <p className="text-quiet text-xs [overflow-wrap:anywhere]">
        <Age at={delivery.finished_at ?? delivery.created_at} />
        {(delivery.last_error || isDead) && ` · ${said}`}
      </p>
    </li>
  );
}
