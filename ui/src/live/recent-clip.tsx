import { Download, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/ui/button";
import { fetchRecent, fileName, NoFilm, save } from "./pictures";

interface Props {
  cameraId: string;
  onBack: () => void;
}

/** The last moments of a camera, over its live picture. */
export function RecentClip({ cameraId, onBack }: Props) {
  const { t } = useTranslation();
  const [film, setFilm] = useState<{ blob: Blob; address: string } | null>(null);
  const [problem, setProblem] = useState<{ text: string } | null>(null);
  useEffect(() => {
    const aborter = new AbortController();
    let address = "";
    fetchRecent(cameraId, aborter.signal).then(
      (blob) => {
        if (aborter.signal.aborted) return;
        address = URL.createObjectURL(blob);
        setFilm({ blob, address });
      },
      (error: unknown) => {
        if (!aborter.signal.aborted) setProblem({ text: error instanceof NoFilm ? error.message : "" });
      },
    );
    return () => {
      aborter.abort();
      if (address) URL.revokeObjectURL(address);
    };
  }, [cameraId]);
  return (
    <section aria-label={t("live.recentTitle")} className="absolute inset-0 flex flex-col bg-black text-white">
      <div className="flex items-center gap-2 px-3 py-2">
        <p className="mr-auto font-medium text-sm">{t("live.recentTitle")}</p>
        {film && (
          <Button variant="outline" size="small" onClick={() => save(film.blob, fileName(cameraId, "mp4"))}>
            <Download aria-hidden="true" />
            {t("live.recentSave")}
          </Button>
        )}
        <Button variant="outline" size="small" onClick={onBack}>
          <X aria-hidden="true" />
          {t("live.recentBack")}
        </Button>
      </div>
      <div className="grid min-h-0 flex-1 place-items-center">
        {film ? (
          // Cameras' films have no captions.
          <video
            controls
            autoPlay
            muted
            playsInline
            src={film.address}
            aria-label={t("live.recentTitle")}
            className="size-full object-contain"
          />
        ) : (
          <p role={problem ? "alert" : "status"} className="px-4 text-sm">
            {t(problem ? "live.recentFailed" : "live.recentAsked")}
            {problem?.text && <span className="mt-1 block">{problem.text}</span>}
          </p>
        )}
      </div>
    </section>
  );
}
