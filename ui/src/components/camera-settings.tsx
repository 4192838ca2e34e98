import { TriangleAlert } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { useChangeCamera, useSites } from "@/api/camera";
import type { Camera, CameraChange, Preset } from "@/api/types";
import { withoutNames } from "@/display/hints";
import { useTellFailure } from "@/hooks/use-tell";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";
import { sentValues } from "./entry-page";
import { SentProblem } from "./form-problem";
import { Button } from "./ui/button";
import { Card } from "./ui/card";
import { CheckField, Field, SelectField } from "./ui/field";

const useWords = addWords("cameras", words);

export const PRESETS: readonly Preset[] = [
  "entrance",
  "corridor",
  "office",
  "shop",
  "kitchen",
  "warehouse",
  "parking",
  "road",
  "outdoor",
];

/** Empty is null: the configured default. */
const numberOf = (text: string | undefined) => (text?.trim() ? Number(text) : null);

export function CameraSettings({ camera }: { camera: Camera }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const change = useChangeCamera(camera.camera_id);
  const sites = useSites().data?.sites ?? [];
  const [preset, setPreset] = useState<Preset | "">(camera.own?.hints?.preset ?? "");
  const own = camera.own;

  function send(event: FormEvent<HTMLFormElement>): void {
    const sent = sentValues(event);
    const hints = { ...own?.hints, preset: preset || null };
    const wanted: CameraChange = {
      name: sent.name ?? camera.name,
      polling_interval_sec: numberOf(sent.interval),
      rotation: numberOf(sent.rotation) as 0 | 90 | 180 | 270 | null,
      clip_sec: numberOf(sent.clip),
      do_not_process: sent.do_not_process === "on",
      live_sound: sent.live_sound === "on" ? null : false,
      ...(preset || own?.hints ? { hints } : {}),
      ...(sent.site && sent.site !== camera.site ? { site: sent.site } : {}),
    };
    change.mutate(wanted, { onSuccess: () => tell({ text: t("saved") }) });
  }

  return (
    <div className="grid max-w-4xl gap-5 lg:grid-cols-2">
      <UnknownHints camera={camera} />
      <Card className="p-4">
        <form className="grid gap-4" onSubmit={send}>
          <Field label={t("name")} name="name" defaultValue={camera.name} required maxLength={128} />
          {sites.length > 1 && (
            <SelectField label={t("site")} name="site" defaultValue={camera.site}>
              {sites.map((site) => (
                <option key={site.name}>{site.name}</option>
              ))}
            </SelectField>
          )}
          <PresetSelect value={preset} onChange={setPreset} />
          <Field
            label={t("intervalField")}
            name="interval"
            type="number"
            min={1}
            max={86_400}
            step="any"
            defaultValue={own?.polling_interval_sec ?? ""}
            hint={t("intervalHint")}
          />
          <SelectField label={t("rotation")} name="rotation" defaultValue={own?.rotation ?? ""}>
            <option value="">{t("noRotation")}</option>
            {[90, 180, 270].map((angle) => (
              <option key={angle} value={angle}>
                {angle}°
              </option>
            ))}
          </SelectField>
          <Field
            label={t("clipSec")}
            name="clip"
            type="number"
            min={0}
            max={60}
            step="any"
            defaultValue={own?.clip_sec ?? ""}
            hint={t("clipHint")}
          />
          <CheckField
            label={t("liveSound")}
            name="live_sound"
            defaultChecked={own?.live_sound !== false}
            hint={t("liveSoundHint")}
          />
          <CheckField
            label={t("doNotProcess")}
            name="do_not_process"
            defaultChecked={camera.do_not_process}
            hint={t("doNotProcessHint")}
          />
          <SentProblem error={change.error} />
          <Button type="submit" className="justify-self-end" disabled={change.isPending}>
            {shared("action.save")}
          </Button>
        </form>
      </Card>
      <AddressForm camera={camera} />
    </div>
  );
}

/** Names in the camera's hints that nothing is called by, so that they do nothing; and the way to be rid of them. */
function UnknownHints({ camera }: { camera: Camera }) {
  const { t } = useWords();
  const change = useChangeCamera(camera.camera_id);
  const failed = useTellFailure();
  const names = camera.unknown_hints ?? [];
  const hints = camera.own?.hints;
  if (names.length === 0) return null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg border border-severity-2/40 bg-severity-2/10 px-4 py-3 text-sm lg:col-span-2">
      <TriangleAlert aria-hidden="true" className="size-4 shrink-0 text-severity-2" />
      <div className="min-w-0 flex-1">
        <p>{t("unknownHints", { names: names.join(", ") })}</p>
        <p className="text-quiet text-xs">{t("unknownHintsLead")}</p>
      </div>
      {hints && (
        <Button
          variant="outline"
          size="small"
          disabled={change.isPending}
          onClick={() =>
            change.mutate(
              { hints: withoutNames(hints, names) },
              {
                onSuccess: () => tell({ text: t("saved"), undo: () => change.mutate({ hints }) }),
                onError: failed,
              },
            )
          }
        >
          {t("dropHints")}
        </Button>
      )}
    </div>
  );
}

export function PresetSelect({ value, onChange }: { value: Preset | ""; onChange: (preset: Preset | "") => void }) {
  const { t } = useWords();
  return (
    <div className="grid gap-1.5">
      <SelectField
        label={t("preset")}
        value={value}
        onChange={(event) => onChange(event.target.value as Preset | "")}
      >
        <option value="">{t("noPreset")}</option>
        {PRESETS.map((preset) => (
          <option key={preset} value={preset}>
            {t(`presets.${preset}`)}
          </option>
        ))}
      </SelectField>
      <p className="text-quiet text-xs">{t("presetHint")}</p>
    </div>
  );
}

function AddressForm({ camera }: { camera: Camera }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const change = useChangeCamera(camera.camera_id);

  function send(event: FormEvent<HTMLFormElement>): void {
    const form = event.currentTarget;
    const { url = "", sub = "", user = "", password = "" } = sentValues(event);
    const login = user || password ? { user, password } : {};
    const wanted: CameraChange = { source: { url, ...login }, sub: sub.trim() ? { url: sub.trim() } : null };
    change.mutate(wanted, {
      onSuccess: () => {
        for (const name of ["user", "password"]) (form.elements.namedItem(name) as HTMLInputElement).value = "";
        tell({ text: t("saved") });
      },
    });
  }

  return (
    <Card className="self-start p-4">
      <form className="grid gap-4" onSubmit={send} autoComplete="off">
        <h2 className="font-semibold text-sm">{t("newAddress")}</h2>
        <Field
          label={t("address")}
          name="url"
          defaultValue={camera.source?.url ?? ""}
          required
          maxLength={1024}
          hint={t("addressHint")}
        />
        <Field label={t("subAddress")} name="sub" defaultValue={camera.sub?.url ?? ""} hint={t("subHint")} />
        <Field label={t("user")} name="user" autoComplete="off" autoCapitalize="none" />
        <Field
          label={t("password")}
          name="password"
          type="password"
          autoComplete="new-password"
          hint={t("passwordHint")}
        />
        <SentProblem error={change.error} />
        <Button type="submit" variant="outline" className="justify-self-end" disabled={change.isPending}>
          {shared("action.change")}
        </Button>
      </form>
    </Card>
  );
}
