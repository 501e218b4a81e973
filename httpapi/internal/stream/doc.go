// Package stream sends a session's history, then its live records, then its end: as events of
// /sse, as events for other stores, at the pace at which it was recorded, or as the records
// themselves. No record is lost or sent twice in between.
package stream
