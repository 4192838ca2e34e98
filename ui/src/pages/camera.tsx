import { BellOff, CirclePause, CirclePlay, Eye, Play, SearchX, Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation, useNavigate, useParams } from "react-router";
import { framePicture } from "@/api/addresses";
import { askLook, useCamera, useChangeCamera, useRemoveCamera } from "@/api/camera";
import { useErrand } from "@/api/errands";
import { asProblem } from "@/api/problem";
import { useSession } from "@/api/queries";
import type { Camera } from "@/api/types";
import { Age } from "@/components/age";
import { CameraGate } from "@/components/camera-gate";
import { CameraLooks } from "@/components/camera-looks";
import { CameraPlacing } from "@/components/camera-placing";
import { CameraRegions } from "@/components/camera-regions";
import { CameraSettings } from "@/components/camera-settings";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { EmptyState } from "@/components/empty-state";
import { Loaded } from "@/components/loaded";
import { PageHead } from "@/components/page-head";
import { useProblemText } from "@/components/problem-notice";
import { SnoozeDialog } from "@/components/snoozes";
import { StandingBadge } from "@/components/standing-badge";
import { Still } from "@/components/still";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { Skeleton } from "@/components/ui/skeleton";
import { LinkTabs } from "@/components/ui/tabs";
import { WhyLines } from "@/components/why-lines";
import {
  isForAddress,
  isSeen,
  isWatchable,
  STANDING_STEP_MS,
  type Standing,
  standingOf,
} from "@/display/camera-standing";
import { knownStream, saidBy, streamText } from "@/display/errands";
import { dateAndTime } from "@/display/times";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { liveTarget } from "@/live/addresses";
import { tell } from "@/shell/notices";

const useWords = addWords("cameras", words);

export function CameraPage() {
  const { id = "", part } = useParams();
  const { t } = useWords();
  const { data: session } = useSession();
  const mayManage = session?.permissions.includes("manage_cameras") ?? false;
  const query = useCamera(id);
  const camera = query.data;
  usePageTitle(camera?.name ?? t("title"));
  const now = useNowBy(STANDING_STEP_MS);
  if (query.error && asProblem(query.error).status === 404) {
    return (
      <EmptyState page Icon={SearchX} title={t("notFoundTitle")} lead={t("notFoundLead")}>
        <Button asChild variant="outline">
          <Link to="/cameras">{t("toList")}</Link>
        </Button>
      </EmptyState>
    );
  }
  const base = `/cameras/${encodeURIComponent(id)}`;
  return (
    <Loaded query={query} waiting={<Waiting />}>
      {(found) => (
        <>
          <PageHead
            title={found.name}
            back={{ to: "/cameras", text: t("toList") }}
            beside={<StandingBadge standing={standingOf(found, now)} />}
            actions={<Actions camera={found} mayManage={mayManage} />}
          />
          {mayManage && (
            <div className="mb-4">
              <LinkTabs
                label={t("parts")}
                links={[
                  { to: base, text: t("overview") },
                  { to: `${base}/regions`, text: t("regions") },
                  { to: `${base}/gate`, text: t("gate") },
                  { to: `${base}/settings`, text: t("settings") },
                ]}
              />
            </div>
          )}
          {shown(found)}
        </>
      )}
    </Loaded>
  );

  function shown(of: Camera): ReactNode {
    if (mayManage && part === "regions") return <CameraRegions key={of.camera_id} camera={of} />;
    if (mayManage && part === "gate") return <CameraGate camera={of} />;
    if (mayManage && part === "settings") return <CameraSettings key={of.camera_id} camera={of} />;
    return <Overview camera={of} mayManage={mayManage} />;
  }
}

function Actions({ camera, mayManage }: { camera: Camera; mayManage: boolean }) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const { search } = useLocation();
  const navigate = useNavigate();
  const problemText = useProblemText();
  const look = useErrand();
  const change = useChangeCamera(camera.camera_id);
  const remove = useRemoveCamera();
  const [removing, setRemoving] = useState(false);
  const [silencing, setSilencing] = useState(false);
  const { name } = camera;
  const failed = (error: unknown) =>
    tell({ text: t("failed", { cause: problemText(error), code: asProblem(error).code }), failed: true });

  const turn = (enabled: boolean) =>
    change.mutate(
      { enabled },
      {
        onSuccess: () =>
          tell({
            text: t(enabled ? "turnedOn" : "turnedOff", { name }),
            undo: () => change.mutate({ enabled: !enabled }),
          }),
        onError: failed,
      },
    );

  return (
    <>
      {isWatchable(camera) && (
        <Button asChild size="small">
          <Link to={liveTarget(search, camera.camera_id)}>
            <Play aria-hidden="true" />
            {shared("live.watch")}
          </Link>
        </Button>
      )}
      <Button
        variant="outline"
        size="small"
        disabled={look.isPending || !camera.enabled}
        onClick={() =>
          look.mutate(() => askLook(camera.camera_id), {
            onSuccess: (errand) =>
              tell(
                errand.state === "done"
                  ? { text: t("looked") }
                  : { text: t("lookFailed", { cause: saidBy(errand, i18n.language) }), failed: true },
              ),
            onError: failed,
          })
        }
      >
        <Eye aria-hidden="true" />
        {t(look.isPending ? "looking" : "look")}
      </Button>
      {mayManage && (
        <>
          <Button variant="outline" size="small" disabled={change.isPending} onClick={() => turn(!camera.enabled)}>
            {camera.enabled ? <CirclePause aria-hidden="true" /> : <CirclePlay aria-hidden="true" />}
            {t(camera.enabled ? "turnOff" : "turnOn")}
          </Button>
          <Button variant="outline" size="small" onClick={() => setSilencing(true)}>
            <BellOff aria-hidden="true" />
            {t("silence")}
          </Button>
          <SnoozeDialog open={silencing} onClose={() => setSilencing(false)} cameraId={camera.camera_id} />
          <Button variant="danger" size="small" onClick={() => setRemoving(true)}>
            <Trash2 aria-hidden="true" />
            {t("remove")}
          </Button>
          <ConfirmDialog
            open={removing}
            onClose={() => setRemoving(false)}
            title={t("removeTitle")}
            lead={t("removeLead", { name })}
            action={t("remove")}
            typed={camera.camera_id}
            onConfirm={async () => {
              await remove.mutateAsync(camera.camera_id);
              tell({ text: t("removed", { name }) });
              void navigate("/cameras");
            }}
          />
        </>
      )}
    </>
  );
}

function Overview({ camera, mayManage }: { camera: Camera; mayManage: boolean }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const { data: session } = useSession();
  const mayPlace = session?.permissions.includes("manage_workers") ?? false;
  const picture = camera.latest_picture;
  const standing = standingOf(camera, useNowBy(STANDING_STEP_MS));
  return (
    <div className="grid grid-cols-1 gap-5 [overflow-wrap:anywhere] lg:grid-cols-[minmax(0,1fr)_22rem]">
      <div className="grid min-w-0 content-start gap-4">
        <div>
          <Still
            // Of a quiet look there is no large one.
            src={picture ? framePicture(picture.frame_uuid, "infer") : null}
            alt={shared("camera.picture", { name: camera.name })}
            troubled={!isSeen(standing) && picture !== null}
            className="rounded-xl border"
          />
          {picture && <Age at={picture.captured_at} className="mt-1 block text-quiet text-sm tabular-nums" />}
        </div>
        <CameraLooks key={camera.camera_id} camera={camera} />
      </div>
      <aside className="grid grid-cols-1 content-start gap-4">
        <Facts camera={camera} standing={standing} mayManage={mayManage} />
        {mayManage && <Why camera={camera} />}
        {mayPlace && <CameraPlacing camera={camera} />}
        <Button asChild variant="outline">
          <Link to={`/events?camera=${encodeURIComponent(camera.camera_id)}`}>{t("events")}</Link>
        </Button>
      </aside>
    </div>
  );
}

interface FactsProps {
  camera: Camera;
  standing: Standing;
  mayManage: boolean;
}

function Facts({ camera, standing, mayManage }: FactsProps) {
  const { t, i18n } = useWords();
  const { tagLabel } = usePhrases();
  const stream = knownStream(camera.caps);
  const { cause, since, issues } = camera.health;
  const lines: [string, ReactNode][] = [
    [
      t("id"),
      <span key="id" className="font-mono">
        {camera.camera_id}
      </span>,
    ],
    [t("site"), camera.site],
    // Told to those who manage cameras only, and nothing is not no worker.
    ...(mayManage ? ([[t("worker"), camera.worker_id ?? t("none")]] as [string, ReactNode][]) : []),
    [t("interval"), t("seconds", { count: camera.polling_interval_sec })],
    ...(stream ? ([[t("stream"), streamText(stream)]] as [string, ReactNode][]) : []),
    ...(camera.source ? ([[t("address"), camera.source.url]] as [string, ReactNode][]) : []),
    ...(camera.sub ? ([[t("sub"), camera.sub.url]] as [string, ReactNode][]) : []),
  ];
  return (
    <Card className="p-4">
      <h2 className="mb-3 font-semibold text-sm">{t("facts")}</h2>
      {standing.kind === "watched" && (
        <p className="mb-2 text-sm">
          {tagLabel(standing.cause)}
          {` (${t("since", { time: dateAndTime(standing.since, i18n.language) })})`}
        </p>
      )}
      {[...(cause ? [cause] : []), ...issues].map((one) => (
        <p key={one.id} className="mb-2 text-severity-2 text-sm">
          {tagLabel(one)}
          {since !== null && ` (${t("since", { time: dateAndTime(since, i18n.language) })})`}
        </p>
      ))}
      {mayManage && isForAddress(standing) && (
        <Button asChild variant="outline" size="small" className="mb-3">
          <Link to={`/cameras/${encodeURIComponent(camera.camera_id)}/settings`}>{t("newAddress")}</Link>
        </Button>
      )}
      {camera.unknown_hints && camera.unknown_hints.length > 0 && (
        <Link
          to={`/cameras/${encodeURIComponent(camera.camera_id)}/settings`}
          className="mb-2 block text-severity-2 text-sm underline underline-offset-4"
        >
          {t("unknownHints", { names: camera.unknown_hints.join(", ") })}
        </Link>
      )}
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-2 text-sm">
        {lines.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-quiet">{name}</dt>
            <dd className="break-words [overflow-wrap:anywhere]">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Why({ camera }: { camera: Camera }) {
  const { t } = useWords();
  return (
    <Card className="p-4">
      <h2 className="mb-2 font-semibold text-sm">{t("why")}</h2>
      <WhyLines cameraId={camera.camera_id} />
    </Card>
  );
}

function Waiting() {
  return (
    <div aria-busy="true" className="grid gap-5 lg:grid-cols-[minmax(0,1fr)_22rem]">
      <div className="grid content-start gap-3">
        <Skeleton className="h-8 w-64" />
        <Skeleton className="aspect-video w-full rounded-xl" />
      </div>
      <Skeleton className="h-72 w-full rounded-xl" />
    </div>
  );
}
