import { useState } from "react";
import { usePin, useReassign, useWorkersAt } from "@/api/operations";
import type { Camera } from "@/api/types";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";
import { Loaded } from "./loaded";
import { Button } from "./ui/button";
import { Card } from "./ui/card";
import { SelectField } from "./ui/field";
import { Skeleton } from "./ui/skeleton";

const useWords = addWords("cameras", words);

/** Which worker looks at a camera: given to another one, or kept at one. For people who manage workers. */
export function CameraPlacing({ camera }: { camera: Camera }) {
  const { t } = useWords();
  const query = useWorkersAt(camera.site);
  const failed = useTellFailure();
  const [reassign, pin] = [useReassign(), usePin()];
  const [wanted, setWanted] = useState("");
  const cameraId = camera.camera_id;
  const isBusy = reassign.isPending || pin.isPending;
  return (
    <Card className="grid gap-3 p-4">
      <h2 className="font-semibold text-sm">{t("placing")}</h2>
      <p className="text-quiet text-xs">{t("placingLead")}</p>
      <Loaded query={query} waiting={<Skeleton className="h-24 w-full" />}>
        {({ workers }) => {
          const workerId = wanted || (camera.worker_id ?? workers[0]?.worker_id ?? "");
          if (workers.length === 0) return <p className="text-quiet text-sm">{t("noWorkers")}</p>;
          return (
            <>
              <SelectField label={t("toWorker")} value={workerId} onChange={(event) => setWanted(event.target.value)}>
                {workers.map((one) => (
                  <option key={one.worker_id} value={one.worker_id}>
                    {`${one.worker_id} (${one.used}/${one.slots}${one.is_connected ? "" : `, ${t("away")}`})`}
                  </option>
                ))}
              </SelectField>
              <div className="flex flex-wrap gap-2">
                <Button
                  variant="outline"
                  size="small"
                  disabled={isBusy || workerId === camera.worker_id}
                  onClick={() =>
                    reassign.mutate(
                      { cameraId, workerId },
                      { onSuccess: () => tell({ text: t("moved", { worker: workerId }) }), onError: failed },
                    )
                  }
                >
                  {t("move")}
                </Button>
                <Button
                  variant="outline"
                  size="small"
                  disabled={isBusy}
                  onClick={() =>
                    pin.mutate(
                      { cameraId, workerId },
                      {
                        onSuccess: () =>
                          tell({
                            text: t("pinned", { worker: workerId }),
                            undo: () => pin.mutate({ cameraId, workerId: null }, { onError: failed }),
                          }),
                        onError: failed,
                      },
                    )
                  }
                >
                  {t("pin")}
                </Button>
                <Button
                  variant="ghost"
                  size="small"
                  disabled={isBusy}
                  onClick={() =>
                    pin.mutate(
                      { cameraId, workerId: null },
                      { onSuccess: () => tell({ text: t("unpinned") }), onError: failed },
                    )
                  }
                >
                  {t("unpin")}
                </Button>
              </div>
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}
