// Package metrics measures logs on JetStream for Prometheus: appends by durability,
// records, shared batches, segments, and followers with their reads of the log. A nil
// value measures nothing. Every label has few values, so that the number of time series
// is bounded.
package metrics
