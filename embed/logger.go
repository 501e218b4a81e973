package embed

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// logger passes the server's warnings and errors on and keeps the last error,
// so that a failed start can say why.
type logger struct {
	log  *slog.Logger
	mu   sync.Mutex
	last string
}

func (l *logger) write(level slog.Level, format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	if level >= slog.LevelError {
		l.mu.Lock()
		l.last = msg
		l.mu.Unlock()
	}
	if l.log != nil {
		l.log.Log(context.Background(), level, msg, slog.String("component", "nats-server"))
	}
}

func (l *logger) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *logger) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v...) }
func (l *logger) Warnf(format string, v ...any)   { l.write(slog.LevelWarn, format, v...) }
func (l *logger) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v...) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

// Fatalf ends the process, as the server expects of it.
func (l *logger) Fatalf(format string, v ...any) {
	l.write(slog.LevelError, format, v...)
	fmt.Fprintf(os.Stderr, "nats-server: "+format+"\n", v...)
	os.Exit(1)
}
