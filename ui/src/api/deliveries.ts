// How things leave the house: receivers, the rules of telling, and what is on its way.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useChanging } from "./changing";
import { answered, api } from "./client";
import type { operations } from "./schema";
import type { NotifyRuleAsked, NotifyRuleChange, ReceiverAsked, ReceiverChange, SnoozeAsked } from "./types";

export type DeliveryFilter = NonNullable<operations["list_deliveries"]["parameters"]["query"]>;

export function useDeliveries(filter: DeliveryFilter) {
  return useInfiniteQuery({
    queryKey: ["deliveries", filter],
    queryFn: ({ pageParam }) =>
      answered(
        api.GET("/api/deliveries", {
          params: { query: { ...filter, limit: 50, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_before,
  });
}

export const useRequeueDelivery = () =>
  useChanging(["deliveries"], (delivery_uuid: string) =>
    answered(api.POST("/api/deliveries/{delivery_uuid}/requeue", { params: { path: { delivery_uuid } } })),
  );

export const useRequeueDeliveries = () =>
  useChanging(["deliveries"], (receiver_uuid: string | null) =>
    answered(api.POST("/api/deliveries/requeue", { body: { receiver_uuid } })),
  );

export const useReceivers = () =>
  useQuery({ queryKey: ["receivers"], queryFn: () => answered(api.GET("/api/receivers")) });

const receiver = (receiver_uuid: string) => ({ params: { path: { receiver_uuid } } });

export const useAddReceiver = () =>
  useChanging(["receivers"], (body: ReceiverAsked) => answered(api.POST("/api/receivers", { body })));

export const useChangeReceiver = () =>
  useChanging(["receivers"], ({ uuid, change }: { uuid: string; change: ReceiverChange }) =>
    answered(api.PATCH("/api/receivers/{receiver_uuid}", { ...receiver(uuid), body: change })),
  );

export const useRemoveReceiver = () =>
  useChanging(["receivers"], (uuid: string) =>
    answered(api.DELETE("/api/receivers/{receiver_uuid}", receiver(uuid))),
  );

/** How long a trial is waited for, and how often it is looked at. */
const TRIAL_MS = 60_000;
const TRIAL_STEP_MS = 1000;

/** Sends a test message, and answers with what became of it. */
export const useTryReceiver = () =>
  useChanging(["deliveries", "receivers"], async (uuid: string) => {
    const { delivery_uuid } = await answered(api.POST("/api/receivers/{receiver_uuid}/test", receiver(uuid)));
    const until = Date.now() + TRIAL_MS;
    for (;;) {
      const now = await answered(api.GET("/api/deliveries/{delivery_uuid}", { params: { path: { delivery_uuid } } }));
      const isOver = !["queued", "running"].includes(now.status);
      if (isOver || Date.now() > until) return now;
      await new Promise((resolve) => setTimeout(resolve, TRIAL_STEP_MS));
    }
  });

export const useRules = () =>
  useQuery({ queryKey: ["rules"], queryFn: () => answered(api.GET("/api/notify/rules")) });

const rule = (rule_uuid: string) => ({ params: { path: { rule_uuid } } });

export const useAddRule = () =>
  useChanging(["rules"], (body: NotifyRuleAsked) => answered(api.POST("/api/notify/rules", { body })));

export const useChangeRule = () =>
  useChanging(["rules"], ({ uuid, body }: { uuid: string; body: NotifyRuleChange }) =>
    answered(api.PATCH("/api/notify/rules/{rule_uuid}", { ...rule(uuid), body })),
  );

export const useRemoveRule = () =>
  useChanging(["rules"], (uuid: string) => answered(api.DELETE("/api/notify/rules/{rule_uuid}", rule(uuid))));

export const useOrderRules = () =>
  useChanging(["rules"], (rule_uuids: string[]) =>
    answered(api.POST("/api/notify/rules/order", { body: { rule_uuids } })),
  );

/** Who would be told of an event if it began now, with what words, and why the others would not. */
export const useNotifyPreview = (eventUuid: string) =>
  useQuery({
    queryKey: ["rules", "preview", eventUuid],
    queryFn: () => answered(api.GET("/api/notify/preview", { params: { query: { event: eventUuid } } })),
    enabled: eventUuid !== "",
  });

/** The deliveries about an event, the newest ones. */
export const useEventDeliveries = (eventUuid: string) =>
  useQuery({
    queryKey: ["deliveries", "event", eventUuid],
    queryFn: () => answered(api.GET("/api/deliveries", { params: { query: { event: eventUuid, limit: 20 } } })),
  });

// --- silence ---

export const useSnoozes = () =>
  useQuery({
    queryKey: ["snoozes"],
    queryFn: () => answered(api.GET("/api/snoozes")),
    refetchInterval: 30_000, // they end by themselves
  });

export const useAddSnooze = () =>
  useChanging(["snoozes"], (body: SnoozeAsked) => answered(api.POST("/api/snoozes", { body })));

export const useEndSnooze = () =>
  useChanging(["snoozes"], (snooze_uuid: string) =>
    answered(api.DELETE("/api/snoozes/{snooze_uuid}", { params: { path: { snooze_uuid } } })),
  );
