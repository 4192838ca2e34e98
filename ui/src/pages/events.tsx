import { BellOff, FilterX, SearchX } from "lucide-react";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { useCameras, useEvents } from "@/api/queries";
import { EmptyState } from "@/components/empty-state";
import { EventCard, EventCardSkeleton } from "@/components/event-card";
import { ProblemNotice, StaleNotice } from "@/components/problem-notice";
import { Button } from "@/components/ui/button";
import { DateField, SelectField } from "@/components/ui/field";
import {
  askedFilter,
  type ChosenFilter,
  type FilterName,
  ISSUE_TAGS,
  readFilter,
  writeFilter,
} from "@/display/event-filter";
import { usePageTitle } from "@/hooks/use-page-title";
import { usePhrases } from "@/hooks/use-phrases";
import { useSeen } from "@/hooks/use-seen";

const SKELETONS = ["a", "b", "c", "d", "e", "f", "g", "h"];
const GRID = "grid grid-cols-[repeat(auto-fill,minmax(min(100%,17rem),1fr))] gap-4";

export function EventsPage() {
  const { t } = useTranslation();
  usePageTitle(t("events.title"));
  const [address, setAddress] = useSearchParams();
  const chosen = useMemo(() => readFilter(address), [address]);
  const filter = useMemo(() => askedFilter(chosen), [chosen]);
  const query = useEvents(filter);
  const choose = (name: FilterName, value: string) =>
    setAddress((now) => writeFilter(now, name, value), { replace: true });
  const clear = () => setAddress({}, { replace: true });
  const retry = () => void query.refetch();
  const filtered = Object.keys(chosen).length > 0;
  const events = query.data?.events;
  return (
    <>
      <h1 className="mb-3 font-semibold text-xl">{t("events.title")}</h1>
      <Filters chosen={chosen} onChoose={choose} onClear={filtered ? clear : null} />
      {query.error && events && <StaleNotice error={query.error} onRetry={retry} at={query.dataUpdatedAt} />}
      {query.error && !events && <ProblemNotice error={query.error} onRetry={retry} />}
      {events?.length === 0 && (filtered ? <NothingMatches onClear={clear} /> : <NoEvents />)}
      <ul className={GRID} aria-label={t("events.list")} aria-busy={query.isPending}>
        {query.isPending && !query.error && SKELETONS.map((name) => <Item key={name} />)}
        {events?.map((event) => (
          <li key={event.event_uuid} className={query.isPlaceholderData ? "opacity-60" : undefined}>
            <EventCard event={event} />
          </li>
        ))}
      </ul>
      {events && events.length > 0 && <Older query={query} />}
    </>
  );
}

const Item = () => (
  <li>
    <EventCardSkeleton />
  </li>
);

function Older({ query }: { query: ReturnType<typeof useEvents> }) {
  const { t } = useTranslation();
  const { fetchOlder, isFetchingOlder, olderProblem, isPlaceholderData } = query;
  const more = Boolean(query.data?.nextBefore);
  const onSeen = useCallback(() => void fetchOlder(), [fetchOlder]);
  const end = useSeen<HTMLDivElement>(onSeen, more && !isFetchingOlder && !olderProblem && !isPlaceholderData);
  if (olderProblem) {
    return (
      <div className="mt-6">
        <ProblemNotice error={olderProblem} onRetry={onSeen} />
      </div>
    );
  }
  if (!more) return <p className="py-8 text-center text-quiet text-sm">{t("events.end")}</p>;
  return (
    <div ref={end} className="grid place-items-center py-8">
      <Button variant="outline" disabled={isFetchingOlder} onClick={onSeen}>
        {t("action.loadOlder")}
      </Button>
    </div>
  );
}

interface FiltersProps {
  chosen: ChosenFilter;
  onChoose: (name: FilterName, value: string) => void;
  onClear: (() => void) | null;
}

function Filters({ chosen, onChoose, onClear }: FiltersProps) {
  const { t } = useTranslation();
  const { primaryEvents, tags, eventPhrase, tagLabel } = usePhrases();
  const cameras = useCameras().data?.pages.flatMap((page) => page.cameras) ?? [];
  const kinds = primaryEvents.filter((one) => one.id !== "none");
  const bind = (name: FilterName) => ({
    value: chosen[name] ?? "",
    onChange: (event: { target: { value: string } }) => onChoose(name, event.target.value),
  });
  return (
    <search
      aria-label={t("events.filter")}
      className="mb-5 grid grid-cols-2 items-end gap-3 sm:grid-cols-3 lg:flex lg:flex-wrap"
    >
      <SelectField label={t("events.camera")} {...bind("camera")} className="lg:w-48">
        <option value="">{t("events.any")}</option>
        {/* A camera that was removed still has its events. */}
        {chosen.camera && !cameras.some((one) => one.camera_id === chosen.camera) && <option>{chosen.camera}</option>}
        {cameras.map((camera) => (
          <option key={camera.camera_id} value={camera.camera_id}>
            {camera.name}
          </option>
        ))}
      </SelectField>
      <SelectField label={t("events.kind")} {...bind("kind")} className="lg:w-44">
        <option value="">{t("events.any")}</option>
        {kinds.map((kind) => (
          <option key={kind.id} value={kind.id}>
            {eventPhrase(kind.id)}
          </option>
        ))}
        {tags
          .filter((tag) => ISSUE_TAGS.includes(tag.id))
          .map((tag) => (
            <option key={tag.id} value={tag.id}>
              {tagLabel(tag)}
            </option>
          ))}
      </SelectField>
      <SelectField label={t("events.severity")} {...bind("severity")} className="lg:w-40">
        <option value="">{t("events.any")}</option>
        {([1, 2, 3] as const).map((step) => (
          <option key={step} value={step}>
            {t("severity.atLeast", { name: t(`severity.s${step}`) })}
          </option>
        ))}
      </SelectField>
      <SelectField label={t("events.state")} {...bind("state")} className="lg:w-32">
        <option value="">{t("events.any")}</option>
        <option value="open">{t("event.ongoing")}</option>
        <option value="closed">{t("event.closed")}</option>
      </SelectField>
      <DateField label={t("events.from")} {...bind("from")} max={chosen.to} className="lg:w-40" />
      <DateField label={t("events.to")} {...bind("to")} min={chosen.from} className="lg:w-40" />
      {onClear && (
        <Button variant="ghost" size="small" className="col-span-full h-9 lg:col-auto" onClick={onClear}>
          <FilterX aria-hidden="true" />
          {t("events.clear")}
        </Button>
      )}
    </search>
  );
}

function NoEvents() {
  const { t } = useTranslation();
  return <EmptyState Icon={BellOff} title={t("events.emptyTitle")} lead={t("events.emptyLead")} />;
}

function NothingMatches({ onClear }: { onClear: () => void }) {
  const { t } = useTranslation();
  return (
    <EmptyState Icon={SearchX} title={t("events.emptyFilteredTitle")} lead={t("events.emptyFilteredLead")}>
      <Button variant="outline" onClick={onClear}>
        {t("events.clear")}
      </Button>
    </EmptyState>
  );
}
