import { CircleQuestionMark, Plus, Server } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useSites } from "@/api/camera";
import { useDrain, useEnrol, useLeases, useQuota, useReclaim, useRevoke, useWorkers } from "@/api/operations";
import { useCameraName } from "@/api/queries";
import type { Enrolment, Lease, Worker } from "@/api/types";
import { Age } from "@/components/age";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopiedText } from "@/components/copied-text";
import { DialogForm } from "@/components/dialog-form";
import { EmptyState } from "@/components/empty-state";
import { LoadedTable } from "@/components/loaded-table";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Dialog, DialogButtons } from "@/components/ui/dialog";
import { Field, SelectField } from "@/components/ui/field";
import { Meter } from "@/components/ui/meter";
import { Cell, Row } from "@/components/ui/table";
import { WhyLines } from "@/components/why-lines";
import { dateAndTime } from "@/display/times";
import { usePageTitle } from "@/hooks/use-page-title";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/workers";
import { tell } from "@/shell/notices";

const useWords = addWords("workers", words);

export function WorkersPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const [enrolling, setEnrolling] = useState(false);
  const { data: quota } = useQuota();
  const enrol = (
    <Button variant="outline" onClick={() => setEnrolling(true)}>
      <Plus aria-hidden="true" />
      {t("enrol")}
    </Button>
  );
  return (
    <>
      <PageHead title={t("title")} lead={t("lead")} actions={enrol} />
      {quota && (
        <div className="mb-5 max-w-sm">
          <Meter
            label={t("quota")}
            value={quota.running}
            max={quota.cameras_running_max}
            text={
              quota.cameras_running_max === null
                ? t("noQuota", { running: quota.running })
                : t("quotaText", { running: quota.running, max: quota.cameras_running_max })
            }
          />
        </div>
      )}
      <Workers onEnrol={() => setEnrolling(true)} />
      <h2 className="mt-6 mb-3 font-semibold">{t("leases")}</h2>
      <Leases />
      <Dialog open={enrolling} onClose={() => setEnrolling(false)} title={t("enrol")}>
        {enrolling && <Enrol onClose={() => setEnrolling(false)} />}
      </Dialog>
    </>
  );
}

function Workers({ onEnrol }: { onEnrol: () => void }) {
  const { t } = useWords();
  const query = useWorkers();
  const workers = query.data?.pages.flatMap((page) => page.workers);
  const headings = [t("worker"), t("state"), t("load"), t("site"), t("version"), t("seen"), ""];
  return (
    <>
      <LoadedTable
        query={{ ...query, data: workers }}
        label={t("workers")}
        headings={headings}
        waitingRows={2}
        empty={
          <EmptyState Icon={Server} title={t("emptyTitle")} lead={t("emptyLead")}>
            <Button onClick={onEnrol}>{t("enrol")}</Button>
          </EmptyState>
        }
      >
        {(worker) => <WorkerRow key={worker.worker_id} worker={worker} />}
      </LoadedTable>
      <More query={query} />
    </>
  );
}

function WorkerRow({ worker }: { worker: Worker }) {
  const { t } = useWords();
  const failed = useTellFailure();
  const drain = useDrain();
  const revoke = useRevoke();
  const [revoking, setRevoking] = useState(false);
  const { worker_id: name } = worker;
  const turn = (draining: boolean) =>
    drain.mutate(
      { workerId: name, draining },
      {
        onSuccess: () =>
          tell({
            text: t(draining ? "drained" : "undrained", { name }),
            undo: () => drain.mutate({ workerId: name, draining: !draining }),
          }),
        onError: failed,
      },
    );
  return (
    <Row>
      <Cell column={0} className="font-medium">
        {name}
        {Object.entries(worker.labels).map(([key, value]) => (
          <Badge key={key} className="ml-1 text-quiet">{`${key}=${value}`}</Badge>
        ))}
      </Cell>
      <Cell column={1}>
        <Badge className={worker.is_connected ? "border-live/40 text-live" : "border-severity-2/40 text-severity-2"}>
          {t(worker.is_connected ? "connected" : "away")}
        </Badge>
        {worker.is_draining && <Badge className="ml-1 text-severity-2">{t("draining")}</Badge>}
      </Cell>
      <Cell column={2} className="min-w-40">
        <Meter
          label={t("load")}
          bare
          value={worker.used}
          max={worker.slots}
          text={t("loadText", { used: worker.used, slots: worker.slots })}
        />
      </Cell>
      <Cell column={3}>{worker.site}</Cell>
      <Cell column={4} className="tabular-nums">
        {worker.version || "–"}
      </Cell>
      <Cell column={5}>{worker.last_seen_at === null ? "–" : <Age at={worker.last_seen_at} />}</Cell>
      <Cell column={6}>
        <div className="flex gap-1 max-sm:flex-wrap sm:justify-end">
          <Button
            variant="outline"
            size="small"
            disabled={drain.isPending}
            aria-label={`${t(worker.is_draining ? "undrain" : "drain")}: ${name}`}
            onClick={() => turn(!worker.is_draining)}
          >
            {t(worker.is_draining ? "undrain" : "drain")}
          </Button>
          <Button
            variant="ghost"
            size="small"
            aria-label={`${t("revoke")}: ${name}`}
            onClick={() => setRevoking(true)}
          >
            {t("revoke")}
          </Button>
        </div>
        <ConfirmDialog
          open={revoking}
          onClose={() => setRevoking(false)}
          title={t("revokeTitle")}
          lead={t("revokeLead", { name })}
          action={t("revoke")}
          typed={name}
          onConfirm={async () => {
            await revoke.mutateAsync(name);
            tell({ text: t("revoked", { name }) });
          }}
        />
      </Cell>
    </Row>
  );
}

function Enrol({ onClose }: { onClose: () => void }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const enrol = useEnrol();
  const sites = useSites().data?.sites ?? [];
  const [made, setMade] = useState<Enrolment | null>(null);
  if (made) {
    return (
      <div className="grid gap-3">
        <p className="text-sm">{t("tokenOnce", { time: dateAndTime(made.expires_at, i18n.language) })}</p>
        <p className="font-medium text-sm">{t("token")}</p>
        <CopiedText text={made.token} label={t("token")} />
        <p className="font-medium text-sm">{t("fingerprint")}</p>
        <CopiedText text={made.ca_sha256} label={t("fingerprint")} />
        <DialogButtons>
          <Button onClick={onClose}>{shared("action.close")}</Button>
        </DialogButtons>
      </div>
    );
  }
  return (
    <DialogForm
      sending={[enrol]}
      onClose={onClose}
      action={t("make")}
      onSend={({ site = "", worker_id = "" }) => {
        enrol.mutate({ ...(site ? { site } : {}), ...(worker_id ? { worker_id } : {}) }, { onSuccess: setMade });
      }}
    >
      <p className="text-quiet text-sm">{t("enrolLead")}</p>
      {sites.length > 1 && (
        <SelectField label={t("site")} name="site">
          {sites.map((site) => (
            <option key={site.name}>{site.name}</option>
          ))}
        </SelectField>
      )}
      <Field
        label={t("workerId")}
        name="worker_id"
        pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,63}"
        autoCapitalize="none"
      />
    </DialogForm>
  );
}

function Leases() {
  const { t } = useWords();
  const query = useLeases();
  const leases = query.data?.pages.flatMap((page) => page.leases);
  const headings = [t("camera"), t("holder"), t("state"), t("left"), t("reason"), ""];
  return (
    <>
      <LoadedTable
        query={{ ...query, data: leases }}
        label={t("leases")}
        headings={headings}
        empty={
          <EmptyState Icon={Server} title={t("leases")} lead={t("noLeases")}>
            <Button asChild variant="outline">
              <Link to="/cameras/add">{t("addCamera")}</Link>
            </Button>
          </EmptyState>
        }
      >
        {(lease) => <LeaseRow key={lease.camera_id} lease={lease} />}
      </LoadedTable>
      <More query={query} />
    </>
  );
}

function LeaseRow({ lease }: { lease: Lease }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const reclaim = useReclaim();
  const name = useCameraName()(lease.camera_id);
  // The worker says a fault's name, then what it met.
  const [fault = "", ...met] = lease.reason.split(": ");
  const isKnown = i18n.exists(`camera.reason.${fault}`);
  const [asking, setAsking] = useState(false);
  const [explaining, setExplaining] = useState(false);
  return (
    <Row>
      <Cell column={0} className="lg:min-w-40">
        <Link
          to={`/cameras/${encodeURIComponent(lease.camera_id)}`}
          className="font-medium underline-offset-4 hover:underline"
        >
          {name}
        </Link>
        <span className="block font-normal text-quiet text-xs">
          <span className="font-mono">{lease.camera_id}</span> ·{" "}
          <span className="inline-block max-w-full">{lease.site}</span>
        </span>
      </Cell>
      <Cell column={1}>{lease.worker_id ?? <span className="text-quiet">{t("nobody")}</span>}</Cell>
      <Cell column={2}>
        <Badge title={lease.state} className={lease.state === "ACTIVE" ? "border-live/40 text-live" : "text-quiet"}>
          {i18n.exists(`states.${lease.state}`, { ns: "workers" })
            ? t(`states.${lease.state as "ACTIVE"}`)
            : lease.state}
        </Badge>
        {lease.is_orphaned_soon && (
          <Badge className="ml-1 border-severity-2/40 text-severity-2">{t("orphaned")}</Badge>
        )}
        {lease.is_stopping && <Badge className="ml-1 text-quiet">{t("stopping")}</Badge>}
      </Cell>
      <Cell column={3} className="whitespace-nowrap tabular-nums">
        {lease.left_ms === null
          ? "–"
          : lease.left_ms === 0
            ? t("expired")
            : t("leftSec", { count: Math.ceil(lease.left_ms / 1000) })}
      </Cell>
      <Cell column={4}>
        {isKnown ? shared(`camera.reason.${fault as "not_found"}`) : lease.reason || "–"}
        {isKnown && met.length > 0 && (
          <span className="block text-quiet text-xs [overflow-wrap:anywhere]">{met.join(": ")}</span>
        )}
        {lease.failures > 0 && (
          <span className="block text-severity-2 text-xs">{t("failures", { count: lease.failures })}</span>
        )}
      </Cell>
      <Cell column={5}>
        <div className="flex gap-1 max-sm:flex-wrap sm:justify-end">
          <Button
            variant="ghost"
            size="small"
            aria-label={`${t("why")}: ${name}`}
            onClick={() => setExplaining(true)}
          >
            <CircleQuestionMark aria-hidden="true" />
            {t("why")}
          </Button>
          {lease.worker_id !== null && (
            <Button
              variant="ghost"
              size="small"
              aria-label={`${t("reclaim")}: ${name}`}
              onClick={() => setAsking(true)}
            >
              {t("reclaim")}
            </Button>
          )}
        </div>
        <Dialog open={explaining} onClose={() => setExplaining(false)} title={t("whyTitle", { camera: name })}>
          {explaining && <WhyLines cameraId={lease.camera_id} />}
        </Dialog>
        <ConfirmDialog
          open={asking}
          onClose={() => setAsking(false)}
          title={t("reclaimTitle")}
          lead={t("reclaimLead", { camera: name })}
          action={t("reclaim")}
          onConfirm={async () => {
            const { outcome } = await reclaim.mutateAsync({ camera_id: lease.camera_id, force: false });
            tell({ text: t(`outcome.${outcome}`) });
          }}
        />
      </Cell>
    </Row>
  );
}
