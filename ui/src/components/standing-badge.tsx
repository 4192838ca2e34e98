import { CircleCheck, CirclePause, Eye, Hourglass, TriangleAlert, Unplug, VideoOff } from "lucide-react";
import type { Standing } from "@/display/camera-standing";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { Badge } from "./ui/badge";

const useWords = addWords("cameras", words);

const LOOKS = {
  good: { Icon: CircleCheck, className: "border-live/40 text-live" },
  waiting: { Icon: Hourglass, className: "text-quiet" },
  watched: { Icon: Eye, className: "text-quiet" },
  off: { Icon: CirclePause, className: "text-quiet" },
  failed: { Icon: VideoOff, className: "border-severity-3/50 bg-severity-3/10 text-severity-3" },
  silent: { Icon: VideoOff, className: "border-severity-3/50 bg-severity-3/10 text-severity-3" },
  unattended: { Icon: Unplug, className: "border-severity-2/40 bg-severity-2/10 text-severity-2" },
  issue: { Icon: TriangleAlert, className: "border-severity-2/40 bg-severity-2/10 text-severity-2" },
} as const;

/** How a camera stands, by colour, icon and word. */
export function StandingBadge({ standing }: { standing: Standing }) {
  const { t } = useWords();
  const { Icon, className } = LOOKS[standing.kind];
  return (
    <Badge className={className}>
      <Icon aria-hidden="true" />
      {t(`standing.${standing.kind}`)}
    </Badge>
  );
}
