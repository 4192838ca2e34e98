import { useState } from "react";
import { useSites } from "@/api/camera";
import { useCameras } from "@/api/queries";
import type { Grants } from "@/api/types";
import { CheckField, Field } from "@/components/ui/field";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/settings";

const useWords = addWords("settings", words);

/** From so many cameras on one is looked for by a part of its name. */
const SOUGHT_MIN = 12;

interface Props {
  granted: Grants | null; // null: everything
  onChange: (granted: Grants | null) => void;
}

/** What somebody reaches: everything, or whole sites and single cameras. */
export function ReachFields({ granted, onChange }: Props) {
  const { t } = useWords();
  const sites = useSites().data?.sites ?? [];
  return (
    <fieldset className="grid min-w-0 gap-2">
      <legend className="mb-1 font-medium text-sm">{t("reach")}</legend>
      <CheckField
        label={t("allSites")}
        checked={granted === null}
        onChange={(event) => onChange(event.target.checked ? null : { sites: [], camera_ids: [] })}
      />
      {granted && (
        <>
          {sites.map(({ name }) => (
            <CheckField
              key={name}
              label={name}
              checked={granted.sites.includes(name)}
              onChange={(event) => onChange({ ...granted, sites: turned(granted.sites, name, event.target.checked) })}
            />
          ))}
          <CameraFields granted={granted} onChange={onChange} />
        </>
      )}
    </fieldset>
  );
}

function CameraFields({ granted, onChange }: Props & { granted: Grants }) {
  const { t } = useWords();
  const [sought, setSought] = useState("");
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  if (cameras.length === 0) return null;
  const shown = cameras.filter((one) =>
    `${one.name} ${one.camera_id} ${one.site}`.toLowerCase().includes(sought.trim().toLowerCase()),
  );
  return (
    <div className="grid min-w-0 gap-2">
      <p className="mt-1 font-medium text-sm">{t("singleCameras")}</p>
      {cameras.length >= SOUGHT_MIN && (
        <Field label={t("findCamera")} value={sought} onChange={(event) => setSought(event.target.value)} />
      )}
      <div className="grid max-h-48 gap-2 overflow-y-auto [overflow-wrap:anywhere]">
        {shown.map((one) => {
          // A site that is granted brings its cameras with it.
          const isOfSite = granted.sites.includes(one.site);
          return (
            <CheckField
              key={one.camera_id}
              label={`${one.name} (${one.site})`}
              checked={isOfSite || granted.camera_ids.includes(one.camera_id)}
              disabled={isOfSite}
              onChange={(event) =>
                onChange({ ...granted, camera_ids: turned(granted.camera_ids, one.camera_id, event.target.checked) })
              }
            />
          );
        })}
      </div>
    </div>
  );
}

function turned(among: readonly string[], one: string, isOn: boolean): string[] {
  const others = among.filter((other) => other !== one);
  return isOn ? [...others, one] : others;
}
