import { Download, Info, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/ui/button";
import { playableCodecs } from "./media-sink";
import { type Film, fetchRecent, fileName, NoFilm, save } from "./pictures";
import { codecName } from "./stream";

interface Props {
  cameraId: string;
  onBack: () => void;
}

/** The last moments of a camera, over its live picture. */
export function RecentClip({ cameraId, onBack }: Props) {
  const { t, i18n } = useTranslation();
  // A browser may have said that it plays something, and then not play it.
  const [plays, setPlays] = useState(playableCodecs);
  const [isUnplayable, setUnplayable] = useState(false);
  const [film, setFilm] = useState<(Film & { address: string }) | null>(null);
  const [problem, setProblem] = useState<{ reason: string; text: string } | null>(null);
  useEffect(() => {
    const aborter = new AbortController();
    let address = "";
    setFilm(null);
    fetchRecent(cameraId, plays, aborter.signal).then(
      (fetched) => {
        if (aborter.signal.aborted) return;
        address = URL.createObjectURL(fetched.blob);
        setFilm({ ...fetched, address });
      },
      (error: unknown) => {
        if (aborter.signal.aborted) return;
        setProblem(
          error instanceof NoFilm ? { reason: error.reason, text: error.message } : { reason: "", text: "" },
        );
      },
    );
    return () => {
      aborter.abort();
      if (address) URL.revokeObjectURL(address);
    };
  }, [cameraId, plays]);
  const failed = () => (plays.includes("h265") ? setPlays(["h264"]) : setUnplayable(true));
  const why =
    problem && i18n.exists(`live.noFilm.${problem.reason}`)
      ? t(`live.noFilm.${problem.reason}` as "live.noFilm.failed")
      : problem?.text;
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
      {film?.note && i18n.exists(`live.note.${film.note}`) && (
        <p className="flex items-center gap-2 px-3 pb-2 text-sm">
          <Info aria-hidden="true" className="size-4 shrink-0" />
          <span>
            {t(`live.note.${film.note}` as "live.note.transcoded_codec")}
            {film.sourceCodec && t("live.note.from", { codec: codecName(film.sourceCodec) })}
          </span>
        </p>
      )}
      <div className="grid min-h-0 flex-1 place-items-center">
        {film && isUnplayable ? (
          <p role="alert" className="px-4 text-sm">
            {t("live.recentUnplayable")}
          </p>
        ) : film ? (
          // Cameras' films have no captions.
          <video
            controls
            autoPlay
            muted
            playsInline
            src={film.address}
            onError={failed}
            aria-label={t("live.recentTitle")}
            className="size-full object-contain"
          />
        ) : (
          <p role={problem ? "alert" : "status"} className="px-4 text-sm">
            {t(problem ? "live.recentFailed" : "live.recentAsked")}
            {why && <span className="mt-1 block">{why}</span>}
          </p>
        )}
      </div>
    </section>
  );
}
