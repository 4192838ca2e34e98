// How a player stays at the live edge of what it has buffered. Pure: where it is and what is there, in; what to do, out.

export interface Span {
  start: number;
  end: number;
}

export interface EdgePolicy {
  seekAboveSec: number; // further behind than this: jump
  hurryAboveSec: number; // further behind than this: play a little faster
  hurryRate: number;
  /** A jump ends this far before the edge, so that the next picture arrives before the last one was shown. */
  landSec: number;
}

/** Measured: 0.13 to 0.18 s behind the camera, where players that wait for a full buffer are a second behind. */
export const SOCKET_EDGE: EdgePolicy = { seekAboveSec: 0.5, hurryAboveSec: 0.2, hurryRate: 1.1, landSec: 0.1 };

/** Segments come whole, so the edge moves by a segment at a time. */
export function segmentEdge(segmentSec: number): EdgePolicy {
  const { hurryRate } = SOCKET_EDGE;
  return { seekAboveSec: segmentSec * 4, hurryAboveSec: segmentSec * 2, hurryRate, landSec: segmentSec };
}

/** On a line that delivers in bursts every jump is followed by a stall: each one makes room for the next. */
export function widened(policy: EdgePolicy, stalls: number): EdgePolicy {
  const roomSec = Math.min(stalls, 6) * 0.25;
  return {
    ...policy,
    seekAboveSec: policy.seekAboveSec + roomSec,
    hurryAboveSec: policy.hurryAboveSec + roomSec,
    landSec: policy.landSec + roomSec / 2,
  };
}

export interface Chase {
  seekTo: number | null;
  rate: number;
  lagSec: number; // behind the newest picture; 0 where there is none
}

export function chase(position: number, spans: readonly Span[], policy: EdgePolicy): Chase {
  const newest = spans.at(-1);
  if (!newest) return { seekTo: null, rate: 1, lagSec: 0 };
  const lagSec = Math.max(0, newest.end - position);
  const isInside = position >= newest.start - 0.01 && position <= newest.end + 0.01;
  // Outside of what is there nothing ever plays: before the first picture, after a gap, after a new beginning.
  if (!isInside || lagSec > policy.seekAboveSec) {
    return { seekTo: Math.max(newest.start, newest.end - policy.landSec), rate: 1, lagSec };
  }
  return { seekTo: null, rate: lagSec > policy.hurryAboveSec ? policy.hurryRate : 1, lagSec };
}

const KEPT_BEHIND_SEC = 10;
const TRIM_FROM_SEC = 20;

/** Up to where what was played may be dropped; null while that is not worth it. */
export function trimmable(
  position: number,
  spans: readonly Span[],
  keptSec: number = KEPT_BEHIND_SEC,
): number | null {
  const oldest = spans[0];
  if (!oldest) return null;
  const until = position - keptSec;
  return position - oldest.start > Math.min(TRIM_FROM_SEC, keptSec * 2) && until > oldest.start ? until : null;
}

export function spansOf(ranges: TimeRanges): Span[] {
  return Array.from({ length: ranges.length }, (_, place) => ({
    start: ranges.start(place),
    end: ranges.end(place),
  }));
}
