import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { BellRing } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { asProblem, type Problem } from "@/api/problem";
import { NO_PUSH_SERVICE, type PushState, pushState, turnOff, turnOn } from "@/api/push";
import { keys } from "@/api/queries";
import { DropdownMenuCheckboxItem } from "./ui/dropdown-menu";

/** "Notify me in this browser", with why it can't be switched on where it can't. */
export function PushSwitch({ login }: { login: string }) {
  const { t } = useTranslation();
  const hintId = useId();
  const { state, toggle, isBusy, problem } = usePush(login);
  const isOn = state === "on" || state === "muted";
  const can = isOn || state === "off";
  const hint = hintOf(state, problem);
  return (
    <DropdownMenuCheckboxItem
      checked={isOn}
      disabled={!can || isBusy}
      aria-label={t("push.label")}
      aria-describedby={hint ? hintId : undefined}
      onSelect={(event) => {
        // Stays open, so that one sees what came of it.
        event.preventDefault();
        toggle();
      }}
    >
      <BellRing aria-hidden="true" className="shrink-0" />
      <span className="max-w-64">
        {t("push.label")}
        {hint && (
          <span id={hintId} className="block text-quiet text-xs">
            {t(`push.${hint}`)}
          </span>
        )}
      </span>
    </DropdownMenuCheckboxItem>
  );
}

function hintOf(state: PushState | undefined, problem: Problem | null) {
  if (problem) return problem.code === NO_PUSH_SERVICE ? "noService" : "failed";
  return state === undefined || state === "on" || state === "off" ? null : state;
}

/** Asked for on every page: a browser that is on, and that the server forgot, is made known again by it. */
export const usePushState = (login: string) =>
  useQuery({ queryKey: keys.push(login), queryFn: () => pushState(login), retry: false, staleTime: 60_000 });

function usePush(login: string) {
  const client = useQueryClient();
  const query = usePushState(login);
  const change = useMutation({
    mutationFn: (wanted: boolean) => (wanted ? turnOn(login) : turnOff()),
    onSuccess: (state) => client.setQueryData(keys.push(login), state),
  });
  return {
    state: query.data,
    toggle: () => change.mutate(query.data === "off"),
    isBusy: change.isPending,
    problem: change.error ? asProblem(change.error) : null,
  };
}
