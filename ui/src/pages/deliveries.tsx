import { CircleCheck, RotateCw } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import { type DeliveryFilter, useDeliveries, useRequeueDeliveries, useRequeueDelivery } from "@/api/deliveries";
import { useCameraName } from "@/api/queries";
import type { Delivery } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { EmptyState } from "@/components/empty-state";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { NotifyPreview } from "@/components/notify-preview";
import { PageHead } from "@/components/page-head";
import { Receivers } from "@/components/receivers";
import { Rules } from "@/components/rules";
import { Snoozes } from "@/components/snoozes";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Cell, Row } from "@/components/ui/table";
import { ChoiceTabs, LinkTabs } from "@/components/ui/tabs";
import { reasonOf } from "@/display/deliveries";
import { useAddress } from "@/hooks/use-address";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTellFailure } from "@/hooks/use-tell";
import { useTroubleText } from "@/hooks/use-trouble-text";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/deliveries";
import { tell } from "@/shell/notices";

const useWords = addWords("deliveries", words);
const STATES = ["dead", "delayed", "queued", "running", "done", "suppressed", "skipped"] as const;

export function DeliveriesPage() {
  const { part } = useParams();
  const { t } = useWords();
  usePageTitle(t("title"));
  return (
    <>
      <PageHead title={t("title")} />
      <div className="mb-4">
        <LinkTabs
          label={t("parts")}
          links={[
            { to: "/deliveries", text: t("log") },
            { to: "/deliveries/receivers", text: t("receivers") },
            { to: "/deliveries/rules", text: t("rules") },
            { to: "/deliveries/snoozes", text: t("snoozes") },
          ]}
        />
      </div>
      {shown()}
    </>
  );

  function shown() {
    if (part === "receivers") return <Receivers />;
    if (part === "snoozes") return <Snoozes />;
    if (part !== "rules") return <Log />;
    return (
      <div className="grid gap-8">
        <div>
          <Rules />
        </div>
        <NotifyPreview />
      </div>
    );
  }
}

function Log() {
  const { t } = useWords();
  const { address } = useAddress();
  const state = address.get("state");
  const filter = useMemo((): DeliveryFilter => {
    const status = state === "all" ? null : (STATES.find((one) => one === state) ?? "dead");
    return status ? { status: [status] } : {};
  }, [state]);
  const query = useDeliveries(filter);
  const deliveries = query.data?.pages.flatMap((page) => page.deliveries);
  const requeue = useRequeueDeliveries();
  const [asking, setAsking] = useState(false);
  const headings = [t("receiver"), t("kind"), t("state"), t("error"), t("about"), t("when"), ""];
  return (
    <>
      <div className="mb-4 flex flex-wrap items-center gap-3">
        <ChoiceTabs
          label={t("state")}
          name="state"
          choices={[...STATES, "all" as const].map((value) => ({
            value,
            text: value === "all" ? t("all") : t(`status.${value}`),
          }))}
        />
        {deliveries?.some((one) => one.status === "dead") && (
          <Button variant="outline" size="small" className="lg:ml-auto" onClick={() => setAsking(true)}>
            <RotateCw aria-hidden="true" />
            {t("requeueAll")}
          </Button>
        )}
      </div>
      <LoadedTable
        query={{ ...query, data: deliveries }}
        label={t("list")}
        headings={headings}
        empty={
          <EmptyState Icon={CircleCheck} title={t("emptyTitle")} lead={t("emptyLead")}>
            <Button asChild variant="outline">
              {state === "all" ? (
                <Link to="/deliveries/receivers">{t("receivers")}</Link>
              ) : (
                <Link to="/deliveries?state=all">{t("showAll")}</Link>
              )}
            </Button>
          </EmptyState>
        }
      >
        {(delivery) => <DeliveryRow key={delivery.delivery_uuid} delivery={delivery} />}
      </LoadedTable>
      <More query={query} />
      <ConfirmDialog
        open={asking}
        onClose={() => setAsking(false)}
        title={t("requeueTitle")}
        lead={t("requeueLead")}
        action={t("requeue")}
        onConfirm={async () => {
          const { count } = await requeue.mutateAsync(null);
          tell({ text: t("requeued", { count }) });
        }}
      />
    </>
  );
}

function DeliveryRow({ delivery }: { delivery: Delivery }) {
  const { t, i18n } = useWords();
  const cameraName = useCameraName();
  const troubleText = useTroubleText();
  const camera = delivery.camera_id && cameraName(delivery.camera_id);
  // Why it was made, held back or given up; what has no words here is said in the server's.
  const told = reasonOf(delivery);
  const said =
    told && i18n.exists(`reasons.${told}`, { ns: "deliveries" })
      ? t(`reasons.${told as "snoozed"}`)
      : troubleText(told);
  const failed = useTellFailure();
  const requeue = useRequeueDelivery();
  // What has no receiver arrives nowhere: it becomes messages and copies, which are rows of their own.
  const isHandedOut = delivery.receiver_uuid === null && delivery.status === "done";
  const isOver = delivery.status === "dead" || delivery.status === "skipped";
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {delivery.receiver_name ?? <span className="text-quiet">{t(`kinds.${delivery.kind}`)}</span>}
      </Cell>
      <Cell column={1}>{t(`kinds.${delivery.kind}`)}</Cell>
      <Cell column={2}>
        <Badge className={delivery.status === "dead" ? "border-severity-3/50 text-severity-3" : "text-quiet"}>
          {t(isHandedOut ? "handedOut" : `status.${delivery.status}`)}
        </Badge>
      </Cell>
      <Cell column={3} className="text-sm">
        {said || "–"}
      </Cell>
      <Cell column={4}>
        {delivery.event_uuid ? (
          <Link to={`/events/${delivery.event_uuid}`} className="text-accent underline-offset-4 hover:underline">
            {camera ?? t("event")}
          </Link>
        ) : (
          (camera ?? delivery.site ?? "–")
        )}
      </Cell>
      <Cell column={5}>
        <Age at={delivery.created_at} />
        {delivery.attempt > 0 && (
          <span className="block text-quiet text-xs">
            {t("attempt")} {delivery.attempt}
          </span>
        )}
      </Cell>
      <Cell column={6}>
        {isOver && (
          <div className="flex sm:justify-end">
            <Button
              variant="outline"
              size="small"
              disabled={requeue.isPending}
              aria-label={`${t("requeue")}: ${delivery.receiver_name ?? delivery.delivery_uuid}`}
              onClick={() =>
                requeue.mutate(delivery.delivery_uuid, {
                  onSuccess: () => tell({ text: t("requeued", { count: 1 }) }),
                  onError: failed,
                })
              }
            >
              {t("requeue")}
            </Button>
          </div>
        )}
      </Cell>
    </Row>
  );
}
