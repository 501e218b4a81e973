// Package stream answers with a session's history, then with what is live, then with its
// end: as events of /sse, as events for other stores, in the time in which it was
// recorded, or as the records themselves. No record is lost or sent twice in between.
package stream
