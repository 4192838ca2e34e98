import { Suspense, useCallback } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { later } from "@/shell/later";
import { liveCameraOf, withoutLive } from "./addresses";

// The player is no part of the first load.
const LiveModal = later(() => import("./live-modal"), "default");

/** Opens live view wherever the address asks for it. */
export function LiveHost() {
  const { t } = useTranslation();
  const [params, setParams] = useSearchParams();
  const cameraId = liveCameraOf(params);
  // Going back afterwards leads to the page before, not into the closed view.
  const close = useCallback(() => setParams(withoutLive, { replace: true, preventScrollReset: true }), [setParams]);
  if (!cameraId) return null;
  return (
    <Suspense fallback={<output className="sr-only">{t("live.loading")}</output>}>
      <LiveModal key={cameraId} cameraId={cameraId} onClose={close} />
    </Suspense>
  );
}
