// Names for the generated types that the rest of the UI speaks of.

import type { components, operations } from "./schema";

type Schemas = components["schemas"];

export type Camera = Schemas["Camera"];
export type CameraIssue = Schemas["CameraIssue"];
export type Clip = Schemas["Clip"];
export type Label = Schemas["Label"];
export type Event = Schemas["Event"];
export type EventDetail = Schemas["EventDetail"];
export type EventPage = Schemas["EventPage"];
export type Frame = Schemas["Frame"];
export type Box = Schemas["Box"];
export type PushSubscriptionAsked = Schemas["PushSubscriptionAsked"];
export type Session = Schemas["Session"];
export type Tag = Schemas["Tag"];
export type Vocabulary = Schemas["Vocabulary"];
export type FeedMessage = Schemas["FeedMessage"];
export type Change = Schemas["Change"];
export type EventFilter = NonNullable<operations["list_events"]["parameters"]["query"]>;
export type Incident = Schemas["Incident"];
export type IncidentPage = Schemas["IncidentPage"];
export type FoundEvent = Schemas["FoundEvent"];
export type SearchFacets = Schemas["SearchFacets"];
export type FacetValue = Schemas["FacetValue"];
export type Case = Schemas["Case"];
export type CaseDetail = Schemas["CaseDetail"];
export type CaseItem = Schemas["CaseItem"];
export type CaseItemAsked = Schemas["CaseItemAsked"];
export type CaseChange = Schemas["CaseChange"];
export type CaseNote = Schemas["CaseNote"];
export type CameraAsked = Schemas["CameraAsked"];
export type CameraChange = Schemas["CameraChange"];
export type CameraLooks = Schemas["CameraLooks"];
export type Errand = Schemas["Errand"];
export type Preset = Schemas["Preset"];
export type Site = Schemas["Site"];
export type Zone = Schemas["Zone"];
