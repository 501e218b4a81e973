// Package metrics measures a log on JetStream, for Prometheus.
package metrics
