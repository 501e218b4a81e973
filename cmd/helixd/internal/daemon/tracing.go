package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/version"
)

const (
	// maxQueuedSpans is how many spans wait for their export; what comes on top
	// of them is lost. Runs never wait for it.
	maxQueuedSpans = 8192
	// spanDelay is how long a span waits for others to be exported with.
	spanDelay = 2 * time.Second
	// flushTimeout is how long a daemon that stops waits for the collector.
	flushTimeout = 5 * time.Second
	// reportEvery is how often an export that fails is logged.
	reportEvery = time.Minute
)

// openTracing returns what makes spans of runs and sends them to the
// collector; nil if there is none.
func (d *Daemon) openTracing(ctx context.Context, c config.Tracing, service, node string, log *slog.Logger) (trace.Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	endpoint, headers, err := settings.Collector(c)
	if err != nil {
		return nil, err
	}
	failures := &failingExport{log: log}
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(failures)
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHeaders(headers))
	if err != nil {
		return nil, err
	}
	failures.SpanExporter = exporter
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(failures, sdktrace.WithMaxQueueSize(maxQueuedSpans), sdktrace.WithBatchTimeout(spanDelay)),
		sdktrace.WithIDGenerator(engine.TraceIDs{}),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(c.SampleRatio))),
		sdktrace.WithResource(resource.NewSchemaless(
			semconv.ServiceName(service), semconv.ServiceVersion(version.Current()), semconv.ServiceInstanceID(node),
		)),
	)
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("traces were lost at the end", "error", err)
		}
	})
	return provider.Tracer("github.com/helixd/helixd/agentloop", trace.WithInstrumentationVersion(version.Current())), nil
}

// failingExport logs now and then that spans can't be exported.
type failingExport struct {
	sdktrace.SpanExporter
	log *slog.Logger

	mu   sync.Mutex
	next time.Time
	lost int
}

// ExportSpans implements sdktrace.SpanExporter.
func (f *failingExport) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := f.SpanExporter.ExportSpans(ctx, spans); err != nil {
		f.report(err, len(spans))
	}
	return nil
}

// Handle implements otel.ErrorHandler.
func (f *failingExport) Handle(err error) { f.report(err, 0) }

func (f *failingExport) report(err error, lost int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost += lost
	if now := time.Now(); now.After(f.next) {
		f.log.Warn("traces can't be exported", "error", err, "lost", f.lost)
		f.next, f.lost = now.Add(reportEvery), 0
	}
}
