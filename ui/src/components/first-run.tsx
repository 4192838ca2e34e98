import { Cctv, FlaskConical, Plus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useAddCamera } from "@/api/camera";
import { useSession } from "@/api/queries";
import { Command, EmptyState } from "./empty-state";
import { SentProblem } from "./form-problem";
import { Button } from "./ui/button";

/** Pictures that the worker draws itself: something moves in one of them. */
const DEMO = [
  { camera_id: "demo-1", name: "Demo 1", url: "test://moving" },
  { camera_id: "demo-2", name: "Demo 2", url: "test://moving?period=25" },
];

/** What to do first where there is no camera yet. */
export function FirstRun() {
  const { t } = useTranslation();
  const { data: session } = useSession();
  const add = useAddCamera();
  const may = (permission: string) => session?.permissions.includes(permission) ?? false;
  if (!may("manage_cameras")) {
    return <EmptyState Icon={Cctv} title={t("wall.emptyTitle")} lead={t("firstRun.ask")} />;
  }

  async function addDemo(): Promise<void> {
    for (const { url, ...camera } of DEMO) {
      await add.mutateAsync({ ...camera, source: { url }, do_not_process: false, network_zone: "local" });
    }
  }

  return (
    <EmptyState Icon={Cctv} title={t("wall.emptyTitle")} lead={t("firstRun.lead")}>
      <div className="flex flex-wrap justify-center gap-2">
        <Button asChild>
          <Link to="/cameras/add">
            <Plus aria-hidden="true" />
            {t("firstRun.add")}
          </Link>
        </Button>
        {may("manage_system") && (
          <Button
            variant="outline"
            disabled={add.isPending}
            onClick={() => void addDemo().catch(() => undefined)}
            title={t("firstRun.demoHint")}
          >
            <FlaskConical aria-hidden="true" />
            {t("firstRun.demo")}
          </Button>
        )}
      </div>
      <SentProblem error={add.error} />
      <p className="mt-2 text-quiet text-sm">{t("wall.emptyLead")}</p>
      <Command>camserver camera add entrance rtsp://192.0.2.10/stream --user admin --password-stdin</Command>
      <p className="mt-2 text-quiet text-sm">{t("wall.emptyDemo")}</p>
      <Command>camserver up --demo</Command>
    </EmptyState>
  );
}
