// What only a worker can do: asked for, waited for, and read.

import { useMutation } from "@tanstack/react-query";
import { answered, api } from "./client";
import type { Errand } from "./types";

const WAIT_SEC = 20;

export const isOver = ({ state }: Pick<Errand, "state">) => state !== "waiting" && state !== "sent";

/** The errand when it is over. The server ends one that nobody answers, so this ends too. */
export async function settled(errand: Errand): Promise<Errand> {
  let now = errand;
  while (!isOver(now)) {
    now = await answered(
      api.GET("/api/errands/{errand_uuid}", {
        params: { path: { errand_uuid: errand.errand_uuid }, query: { wait_sec: WAIT_SEC } },
      }),
    );
  }
  return now;
}

/** Sends a worker on an errand and waits for what comes of it. */
export const useErrand = () =>
  useMutation({ mutationFn: async (ask: () => Promise<Errand>) => settled(await ask()) });

export const errandPicture = (uuid: string) => `/api/errands/${encodeURIComponent(uuid)}/picture`;
