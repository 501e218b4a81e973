// Package stream answers with a session's history, then with what is live, then with its end. No
// record is lost or sent twice in between.
package stream
