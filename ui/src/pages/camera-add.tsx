import { Check, CircleAlert, CircleCheck, Radar } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { askDiscovery, askLook, askProbe, askStreams, type Login, useAddCamera, useSites } from "@/api/camera";
import { errandPicture, useErrand } from "@/api/errands";
import { useCameras } from "@/api/queries";
import type { Camera, CameraAsked, Errand, Preset } from "@/api/types";
import { PresetSelect } from "@/components/camera-settings";
import { SentProblem } from "@/components/form-problem";
import { PageHead } from "@/components/page-head";
import { RegionEditor } from "@/components/region-editor";
import { Still } from "@/components/still";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { cn } from "@/components/ui/class-names";
import { Field, SelectField } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import { CAMERA_ID_PATTERN, suggestedId } from "@/display/camera-names";
import { devicesOf, type FoundDevice, offerOf, probedStream, saidBy, streamText } from "@/display/errands";
import { drawnValues, type Region } from "@/display/regions";
import { usePageTitle } from "@/hooks/use-page-title";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import { tell } from "@/shell/notices";

const useWords = addWords("cameras", words);

const STEPS = ["find", "probe", "draw", "place", "test"] as const;
type Step = (typeof STEPS)[number];

interface Draft extends Login {
  site: string; // empty: the oldest one
  url: string;
  sub: string;
  probe: Errand | null; // that worked
  regions: Region[];
  name: string;
  cameraId: string;
  preset: Preset | "";
}

const EMPTY: Draft = {
  site: "",
  url: "",
  sub: "",
  user: "",
  password: "",
  probe: null,
  regions: [],
  name: "",
  cameraId: "",
  preset: "",
};

interface StepProps {
  draft: Draft;
  onChange: (changes: Partial<Draft>) => void;
  onStep: (step: Step) => void;
}

/** From a network with cameras in it to one that is watched: find, try, draw, name, test. */
export function CameraAddPage() {
  const { t } = useWords();
  usePageTitle(t("wizard"));
  const [step, setStep] = useState<Step>("find");
  const [draft, setDraft] = useState(EMPTY);
  const [made, setMade] = useState<Camera | null>(null);
  const props: StepProps = {
    draft,
    onChange: (changes) => setDraft((now) => ({ ...now, ...changes })),
    onStep: setStep,
  };
  return (
    <div className="mx-auto max-w-5xl">
      <PageHead title={t("wizard")} back={{ to: "/cameras", text: t("toList") }} />
      <Progress step={step} />
      {step === "find" && <FindStep {...props} />}
      {step === "probe" && <ProbeStep {...props} />}
      {step === "draw" && <DrawStep {...props} />}
      {step === "place" && (
        <PlaceStep
          {...props}
          onMade={(camera) => {
            setMade(camera);
            // A login is not kept longer than it is needed.
            setDraft(EMPTY);
            setStep("test");
          }}
        />
      )}
      {step === "test" && made && (
        <TestStep
          camera={made}
          onAnother={() => {
            setMade(null);
            setStep("find");
          }}
        />
      )}
    </div>
  );
}

function Progress({ step }: { step: Step }) {
  const { t } = useWords();
  const place = STEPS.indexOf(step);
  return (
    <ol aria-label={t("steps")} className="mb-5 flex flex-wrap gap-x-4 gap-y-2 text-sm">
      {STEPS.map((one, number) => (
        <li
          key={one}
          aria-current={one === step ? "step" : undefined}
          className={cn("flex items-center gap-2", one === step ? "font-semibold" : "text-quiet")}
        >
          <span
            aria-hidden="true"
            className={cn(
              "grid size-6 place-items-center rounded-full border text-xs",
              number < place && "border-live text-live",
              one === step && "border-accent bg-accent text-accent-text",
            )}
          >
            {number < place ? <Check className="size-3.5" /> : number + 1}
          </span>
          {t(`step.${one}`)}
        </li>
      ))}
    </ol>
  );
}

function Buttons({ children }: { children: ReactNode }) {
  return <div className="mt-5 flex flex-wrap justify-end gap-2">{children}</div>;
}

function FindStep({ draft, onChange, onStep }: StepProps) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const sites = useSites().data?.sites ?? [];
  const discovery = useErrand();
  const [device, setDevice] = useState<FoundDevice | null>(null);
  const found = discovery.data ? devicesOf(discovery.data) : null;
  const failed = discovery.data && discovery.data.state !== "done" ? discovery.data : null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onStep("probe");
      }}
    >
      {sites.length > 1 && (
        <div className="mb-4 max-w-xs">
          <SelectField
            label={t("site")}
            value={draft.site}
            onChange={(event) => onChange({ site: event.target.value })}
          >
            {sites.map((site, place) => (
              <option key={site.name} value={place === 0 ? "" : site.name}>
                {site.name}
              </option>
            ))}
          </SelectField>
        </div>
      )}
      <div className="grid gap-5 lg:grid-cols-2">
        <Card className="grid content-start gap-3 p-4">
          <Button
            variant="outline"
            disabled={discovery.isPending}
            onClick={() => discovery.mutate(() => askDiscovery(draft.site || null))}
          >
            <Radar aria-hidden="true" />
            {t(discovery.isPending ? "discovering" : "discover")}
          </Button>
          <SentProblem error={discovery.error} />
          {discovery.isPending && <Skeleton className="h-24 w-full" />}
          {failed && <p className="text-severity-2 text-sm">{saidBy(failed, i18n.language)}</p>}
          {found && !failed && <Devices devices={found} chosen={device} onChoose={setDevice} />}
          {device && <Streams device={device} draft={draft} onChange={onChange} onStep={onStep} />}
        </Card>
        <Card className="grid content-start gap-4 p-4">
          <h2 className="font-semibold text-sm">{t("orType")}</h2>
          <Field
            label={t("address")}
            value={draft.url}
            onChange={(event) => onChange({ url: event.target.value, probe: null })}
            required
            maxLength={1024}
            autoCapitalize="none"
            spellCheck={false}
            hint={t("addressExample")}
          />
          <Field
            label={t("subAddress")}
            value={draft.sub}
            onChange={(event) => onChange({ sub: event.target.value })}
            autoCapitalize="none"
            spellCheck={false}
            hint={t("subHint")}
          />
        </Card>
      </div>
      <Buttons>
        <Button type="submit" disabled={draft.url.trim() === ""}>
          {shared("action.next")}
        </Button>
      </Buttons>
    </form>
  );
}

interface DevicesProps {
  devices: readonly FoundDevice[];
  chosen: FoundDevice | null;
  onChoose: (device: FoundDevice) => void;
}

function Devices({ devices, chosen, onChoose }: DevicesProps) {
  const { t } = useWords();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  if (devices.length === 0) return <p className="text-quiet text-sm">{t("noDevices")}</p>;
  const isKnown = ({ address }: FoundDevice) => cameras.some((one) => one.source?.url.includes(`//${address}`));
  return (
    <ul aria-label={t("devices")} className="grid gap-1">
      {devices.map((device) => (
        <li key={device.reference || device.address}>
          <button
            type="button"
            aria-pressed={device === chosen}
            onClick={() => onChoose(device)}
            className={cn(
              "flex w-full items-center gap-3 rounded-md border px-3 py-2 text-left text-sm",
              device === chosen ? "border-accent bg-accent-soft" : "hover:bg-raised",
            )}
          >
            <span className="min-w-0 flex-1">
              <span className="block truncate font-medium">{device.name || device.address}</span>
              <span className="block truncate text-quiet text-xs">
                {[device.hardware, device.address].filter(Boolean).join(" · ")}
              </span>
            </span>
            {isKnown(device) && <Badge className="text-quiet">{t("known")}</Badge>}
          </button>
        </li>
      ))}
    </ul>
  );
}

function LoginFields({ draft, onChange }: Pick<StepProps, "draft" | "onChange">) {
  const { t } = useWords();
  return (
    <fieldset className="grid gap-3">
      <legend className="mb-1 font-medium text-sm">{t("login")}</legend>
      <p className="text-quiet text-xs">{t("loginHint")}</p>
      <div className="grid gap-3 sm:grid-cols-2">
        <Field
          label={t("user")}
          value={draft.user}
          onChange={(event) => onChange({ user: event.target.value })}
          autoComplete="off"
          autoCapitalize="none"
        />
        <Field
          label={t("password")}
          type="password"
          value={draft.password}
          onChange={(event) => onChange({ password: event.target.value })}
          autoComplete="new-password"
        />
      </div>
    </fieldset>
  );
}

/** What a device offers; it is asked with the camera's login, which nobody else gets. */
function Streams({ device, draft, onChange, onStep }: StepProps & { device: FoundDevice }) {
  const { t, i18n } = useWords();
  const ask = useErrand();
  const errand = ask.data;
  const offer = errand?.state === "done" ? offerOf(errand) : null;
  return (
    <div className="grid gap-3 border-t pt-3">
      <LoginFields draft={draft} onChange={onChange} />
      <Button
        variant="outline"
        disabled={ask.isPending}
        onClick={() =>
          ask.mutate(() => askStreams(device.address, draft, draft.site || null), {
            onSuccess: (done) => {
              const { maker, streams, main, sub } = offerOf(done);
              const url = (token: string | null) => streams.find((one) => one.token === token)?.url ?? "";
              if (main) onChange({ url: url(main), sub: url(sub), name: device.name || maker, probe: null });
            },
          })
        }
      >
        {t(ask.isPending ? "askingStreams" : "askStreams")}
      </Button>
      <SentProblem error={ask.error} />
      {errand && errand.state !== "done" && (
        <p role="alert" className="text-severity-2 text-sm">
          {saidBy(errand, i18n.language)}
        </p>
      )}
      {offer && (
        <>
          <p className="text-quiet text-sm">{offer.maker}</p>
          {(["url", "sub"] as const).map((which) => (
            <SelectField
              key={which}
              label={t(which === "url" ? "mainStream" : "subStream")}
              value={draft[which]}
              onChange={(event) => onChange({ [which]: event.target.value, probe: null })}
            >
              {which === "sub" && <option value="">{t("none")}</option>}
              {offer.streams.map((one) => (
                <option key={one.token} value={one.url}>
                  {`${one.name} (${one.codec} ${one.width}×${one.height})`}
                </option>
              ))}
            </SelectField>
          ))}
          <Button onClick={() => onStep("probe")}>{t("use")}</Button>
        </>
      )}
    </div>
  );
}

function ProbeStep({ draft, onChange, onStep }: StepProps) {
  const { t, i18n } = useWords();
  const { t: shared } = useTranslation();
  const probe = useErrand();
  const errand = probe.data ?? draft.probe;
  const stream = errand?.state === "done" ? probedStream(errand) : null;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onChange({ probe: null });
        probe.mutate(() => askProbe(draft.url.trim(), draft, draft.site || null), {
          onSuccess: (done) => onChange({ probe: done.state === "done" ? done : null }),
        });
      }}
    >
      <div className="grid gap-5 lg:grid-cols-2">
        <Card className="grid content-start gap-4 p-4">
          <p className="break-all font-mono text-sm">{draft.url}</p>
          <LoginFields draft={draft} onChange={onChange} />
          <Button type="submit" variant={draft.probe ? "outline" : "primary"} disabled={probe.isPending}>
            {t(probe.isPending ? "probing" : "probe")}
          </Button>
        </Card>
        <div aria-live="polite">
          {probe.isPending && <Skeleton className="aspect-video w-full rounded-xl" />}
          <SentProblem error={probe.error} />
          {!probe.isPending && errand && <Outcome errand={errand} />}
          {stream && !probe.isPending && (
            <p className="mt-2 flex items-center gap-2 text-sm">
              <CircleCheck aria-hidden="true" className="size-5 text-live" />
              {t("probed", { stream: streamText(stream) })}
            </p>
          )}
        </div>
      </div>
      <Buttons>
        <Button variant="ghost" onClick={() => onStep("find")}>
          {shared("action.back")}
        </Button>
        {!draft.probe && (
          <Button variant="outline" onClick={() => onStep("draw")}>
            {t("probeSkip")}
          </Button>
        )}
        <Button disabled={!draft.probe} onClick={() => onStep("draw")}>
          {shared("action.next")}
        </Button>
      </Buttons>
    </form>
  );

  function Outcome({ errand: of }: { errand: Errand }) {
    if (of.state === "done") {
      return of.has_picture ? (
        <Still src={errandPicture(of.errand_uuid)} alt={t("probePicture")} className="rounded-xl border" />
      ) : null;
    }
    return (
      <Card role="alert" className="grid justify-items-start gap-2 p-4">
        <p className="flex items-center gap-2 font-semibold">
          <CircleAlert aria-hidden="true" className="size-5 text-severity-3" />
          {t("probeFailed")}
        </p>
        <p className="text-sm">{saidBy(of, i18n.language)}</p>
      </Card>
    );
  }
}

function DrawStep({ draft, onChange, onStep }: StepProps) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const stream = draft.probe ? probedStream(draft.probe) : null;
  return (
    <>
      <p className="mb-3 text-quiet text-sm">{t("drawLead")}</p>
      <RegionEditor
        picture={draft.probe?.has_picture ? errandPicture(draft.probe.errand_uuid) : null}
        {...(stream ? { aspect: stream.width / stream.height } : {})}
        regions={draft.regions}
        onChange={(regions) => onChange({ regions })}
      />
      <Buttons>
        <Button variant="ghost" onClick={() => onStep("probe")}>
          {shared("action.back")}
        </Button>
        <Button onClick={() => onStep("place")}>{shared("action.next")}</Button>
      </Buttons>
    </>
  );
}

function PlaceStep({ draft, onChange, onStep, onMade }: StepProps & { onMade: (camera: Camera) => void }) {
  const { t } = useWords();
  const { t: shared } = useTranslation();
  const add = useAddCamera();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const taken = cameras.map((one) => one.camera_id);
  const cameraId = draft.cameraId || suggestedId(draft.name, draft.url, taken);
  const isTaken = taken.includes(cameraId);

  function save(): void {
    const login = draft.user || draft.password ? { user: draft.user, password: draft.password } : {};
    const drawn = Object.fromEntries(
      Object.entries(drawnValues(draft.regions)).filter(([, value]) => value !== null),
    );
    const asked: CameraAsked = {
      camera_id: cameraId,
      do_not_process: false,
      network_zone: "local",
      name: draft.name.trim(),
      source: { url: draft.url.trim(), ...login },
      ...(draft.sub.trim() ? { sub: { url: draft.sub.trim() } } : {}),
      ...(draft.site ? { site: draft.site } : {}),
      ...(draft.preset ? { hints: { preset: draft.preset } } : {}),
      ...drawn,
    };
    add.mutate(asked, {
      onSuccess: (camera) => {
        tell({ text: t("added", { name: camera.name }) });
        onMade(camera);
      },
    });
  }

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Card className="grid max-w-xl gap-4 p-4">
        <Field
          label={t("name")}
          value={draft.name}
          onChange={(event) => onChange({ name: event.target.value })}
          required
          maxLength={128}
          hint={t("nameHint")}
        />
        <Field
          label={t("id")}
          value={cameraId}
          onChange={(event) => onChange({ cameraId: event.target.value })}
          required
          pattern={CAMERA_ID_PATTERN}
          autoCapitalize="none"
          spellCheck={false}
          hint={isTaken ? t("idTaken") : t("idHint")}
          aria-invalid={isTaken}
        />
        <PresetSelect value={draft.preset} onChange={(preset) => onChange({ preset })} />
        <SentProblem error={add.error} />
      </Card>
      <Buttons>
        <Button variant="ghost" onClick={() => onStep("draw")}>
          {shared("action.back")}
        </Button>
        <Button type="submit" disabled={add.isPending || isTaken}>
          {t("save")}
        </Button>
      </Buttons>
    </form>
  );
}

function TestStep({ camera, onAnother }: { camera: Camera; onAnother: () => void }) {
  const { t, i18n } = useWords();
  const look = useErrand();
  const errand = look.data;
  return (
    <Card className="grid max-w-2xl gap-4 p-4">
      <h2 className="font-semibold">{camera.name}</h2>
      <p className="text-quiet text-sm">{t("testLead")}</p>
      <Button
        variant={errand?.state === "done" ? "outline" : "primary"}
        className="justify-self-start"
        disabled={look.isPending}
        onClick={() => look.mutate(() => askLook(camera.camera_id))}
      >
        {t(look.isPending ? "testing" : "test")}
      </Button>
      <SentProblem error={look.error} />
      <div aria-live="polite" className="grid gap-2">
        {look.isPending && <Skeleton className="aspect-video w-full rounded-xl" />}
        {errand?.has_picture && (
          <Still src={errandPicture(errand.errand_uuid)} alt={t("probePicture")} className="rounded-xl border" />
        )}
        {errand && (
          <p className="flex items-center gap-2 text-sm">
            {errand.state === "done" ? (
              <CircleCheck aria-hidden="true" className="size-5 shrink-0 text-live" />
            ) : (
              <CircleAlert aria-hidden="true" className="size-5 shrink-0 text-severity-3" />
            )}
            {errand.state === "done" ? t("testOk") : saidBy(errand, i18n.language)}
          </p>
        )}
      </div>
      <div className="flex flex-wrap justify-end gap-2">
        <Button variant="ghost" onClick={onAnother}>
          {t("another")}
        </Button>
        <Button asChild variant="outline">
          <Link to={`/cameras/${encodeURIComponent(camera.camera_id)}`}>{t("toCamera")}</Link>
        </Button>
        <Button asChild variant="outline">
          <Link to="/">{t("toWall")}</Link>
        </Button>
      </div>
    </Card>
  );
}
