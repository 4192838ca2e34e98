import { Radar } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { askDiscovery, askStreams, useSites } from "@/api/camera";
import { useErrand } from "@/api/errands";
import { useCameras } from "@/api/queries";
import { SentProblem } from "@/components/form-problem";
import { Badge } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { Card } from "@/components/ui/card";
import { cn } from "@/components/ui/class-names";
import { Field, SelectField } from "@/components/ui/field";
import { Skeleton } from "@/components/ui/skeleton";
import { devicesOf, type FoundDevice, offerOf, saidBy } from "@/display/errands";
import { addWords } from "@/i18n/page-words";
import * as words from "@/i18n/pages/cameras";
import type { StepProps } from "./draft";
import { LoginFields, StepButtons } from "./step-parts";

const useWords = addWords("cameras", words);

/** Finds cameras in the network, or takes an address that is typed. */
export function FindStep({ draft, onChange, onStep }: StepProps) {
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
            // Where none is named, the server takes the oldest.
            value={draft.site || oldestOf(sites)}
            onChange={(event) => onChange({ site: event.target.value })}
          >
            {sites.map((site) => (
              <option key={site.name}>{site.name}</option>
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
          {!discovery.data && !discovery.isPending && <p className="text-quiet text-xs">{t("discoverHint")}</p>}
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
      <StepButtons>
        <Button type="submit" disabled={draft.url.trim() === ""}>
          {shared("action.next")}
        </Button>
      </StepButtons>
    </form>
  );
}

const oldestOf = (sites: readonly { name: string; created_at: number }[]) =>
  sites.reduce((oldest, site) => (site.created_at < oldest.created_at ? site : oldest)).name;

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
