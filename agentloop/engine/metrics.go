package engine

import "github.com/prometheus/client_golang/prometheus"

// Metrics measure what a loop does. A nil one measures nothing. Labels are
// names that the agents' definitions have, or one of few words; what models and
// callers make up is "other".
type Metrics = meters

// NewMetrics registers what a loop measures. It panics if that is registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics { return newMeters(reg) }
