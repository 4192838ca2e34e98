import { Cctv, FileUp, Plus, SearchX } from "lucide-react";
import { Link } from "react-router";
import { framePicture } from "@/api/addresses";
import { useCameras, useSession } from "@/api/queries";
import type { Camera } from "@/api/types";
import { Age } from "@/components/age";
import { EmptyState } from "@/components/empty-state";
import { Loaded } from "@/components/loaded";
import { More } from "@/components/more";
import { PageHead } from "@/components/page-head";
import { StandingBadge } from "@/components/standing-badge";
import { Still } from "@/components/still";
import { Button } from "@/components/ui/button";
import { Cell, Row, SkeletonRows, Table } from "@/components/ui/table";
import { ChoiceTabs } from "@/components/ui/tabs";
import { isWell, STANDING_STEP_MS, type Standing, standingOf } from "@/display/camera-standing";
import { knownStream, streamText } from "@/display/errands";
import { useAddress } from "@/hooks/use-address";
import { useNowBy } from "@/hooks/use-now";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { useWritten } from "@/hooks/use-written";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { matches } from "@/shell/matching";

const useWords = addWords("cameras", words);

export function CamerasPage() {
  const { t } = useWords();
  usePageTitle(t("title"));
  const { data: session } = useSession();
  const mayManage = session?.permissions.includes("manage_cameras") ?? false;
  const query = useCameras();
  const cameras = query.data?.pages.flatMap((page) => page.cameras);
  const { address, clear } = useAddress();
  const written = useWritten("name");
  const now = useNowBy(STANDING_STEP_MS);
  const fits = (camera: Camera) => {
    const standing = standingOf(camera, now);
    const view = address.get("view");
    if (view === "troubled" && (isWell(standing) || standing.kind === "off")) return false;
    if (view === "off" && standing.kind !== "off") return false;
    return matches(`${camera.name} ${camera.camera_id} ${camera.site}`, address.get("name") ?? "");
  };
  // Who looks at a camera is told to those who manage cameras only, and nothing is not no worker.
  const worker = mayManage ? [t("worker")] : [];
  const headings = [t("lastPicture"), t("name"), t("state"), t("site"), ...worker, t("stream")];
  return (
    <>
      <PageHead
        title={t("title")}
        actions={
          mayManage && (
            <>
              <ImportLink />
              <AddLink />
            </>
          )
        }
      />
      <div className="mb-4 flex flex-wrap items-center gap-3">
        <ChoiceTabs
          label={t("state")}
          name="view"
          choices={(["all", "troubled", "off"] as const).map((value) => ({ value, text: t(value) }))}
        />
        <input
          type="search"
          aria-label={t("filter")}
          placeholder={t("filter")}
          {...written}
          className="h-9 w-full rounded-md border bg-ground px-3 text-base placeholder:text-quiet sm:w-56 sm:text-sm"
        />
      </div>
      <Loaded
        query={{ ...query, data: cameras }}
        waiting={
          <Table label={t("list")} headings={headings} busy>
            <SkeletonRows columns={headings.length} />
          </Table>
        }
      >
        {(found) => {
          const shown = found.filter(fits);
          if (found.length === 0) {
            return (
              <EmptyState Icon={Cctv} title={t("emptyTitle")} lead={t("emptyLead")}>
                {mayManage && (
                  <div className="flex flex-wrap justify-center gap-2">
                    <AddLink />
                    <ImportLink />
                  </div>
                )}
              </EmptyState>
            );
          }
          if (shown.length === 0) {
            return (
              <EmptyState Icon={SearchX} title={t("emptyFilteredTitle")} lead={t("emptyFilteredLead")}>
                <Button variant="outline" onClick={clear}>
                  {t("clear")}
                </Button>
              </EmptyState>
            );
          }
          return (
            <Table label={t("list")} headings={headings}>
              {shown.map((camera) => (
                <CameraRow key={camera.camera_id} camera={camera} mayManage={mayManage} />
              ))}
            </Table>
          );
        }}
      </Loaded>
      <More query={query} />
    </>
  );
}

function AddLink() {
  const { t } = useWords();
  return (
    <Button asChild>
      <Link to="/cameras/add">
        <Plus aria-hidden="true" />
        {t("add")}
      </Link>
    </Button>
  );
}

function ImportLink() {
  const { t } = useWords();
  return (
    <Button asChild variant="outline">
      <Link to="/cameras/import">
        <FileUp aria-hidden="true" />
        {t("importLink")}
      </Link>
    </Button>
  );
}

function CameraRow({ camera, mayManage }: { camera: Camera; mayManage: boolean }) {
  const { t } = useWords();
  const standing = standingOf(camera, useNowBy(STANDING_STEP_MS));
  const stream = knownStream(camera.caps);
  const picture = camera.latest_picture;
  return (
    <Row className="hover:bg-raised/50">
      <Cell column={0} className="sm:w-30 xl:w-40 sm:py-1.5">
        <Still
          src={picture ? framePicture(picture.frame_uuid, "infer") : null}
          alt=""
          className="w-24 rounded-md max-sm:w-full xl:w-32"
        />
      </Cell>
      <Cell column={1} lead>
        <Link
          to={`/cameras/${encodeURIComponent(camera.camera_id)}`}
          className="font-medium underline-offset-4 hover:underline"
        >
          {camera.name}
        </Link>
        <span className="block font-mono text-quiet text-xs">{camera.camera_id}</span>
      </Cell>
      <Cell column={2}>
        <StandingBadge standing={standing} />
        <Cause standing={standing} />
        {picture && <Age at={picture.captured_at} className="block text-quiet text-xs tabular-nums" />}
      </Cell>
      <Cell column={3} className="sm:[word-break:keep-all]">
        {camera.site}
      </Cell>
      {mayManage && <Cell column={4}>{camera.worker_id ?? <span className="text-quiet">{t("none")}</span>}</Cell>}
      <Cell column={mayManage ? 5 : 4} className="tabular-nums sm:min-w-32 xl:whitespace-nowrap">
        {stream ? streamText(stream) : "–"}
      </Cell>
    </Row>
  );
}

function Cause({ standing }: { standing: Standing }) {
  const { tagLabel } = usePhrases();
  const causes =
    standing.kind === "issue"
      ? standing.issues
      : (standing.kind === "failed" || standing.kind === "watched") && standing.cause
        ? [standing.cause]
        : [];
  return causes.map((cause) => (
    <span key={cause.id} className="block text-quiet text-xs">
      {tagLabel(cause)}
    </span>
  ));
}
