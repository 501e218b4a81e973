package memory

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics measure what a manager does.
type Metrics struct {
	embeddings *prometheus.CounterVec
}

// NewMetrics registers what a manager measures. It panics if that is registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{
		embeddings: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_memory_embeddings_total",
			Help: "Texts that were sent to an embedder, by what they are of (memory, question, or probe: a check whether the embedder is available again) and outcome (ok or failed). A memory that failed stays pending.",
		}, []string{"of", "outcome"}),
	}
}

// Values of the label of.
const (
	ofMemory   = "memory"
	ofQuestion = "question"
	ofProbe    = "probe"
)

func (m *Metrics) embedded(of string, texts int, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.embeddings.WithLabelValues(of, outcome).Add(float64(texts))
}
