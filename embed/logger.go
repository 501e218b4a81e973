package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// plaintextWarning is the server's advice to hash passwords in its config
// file. There is no such file: the passwords are in memory only.
const plaintextWarning = "Plaintext passwords detected, use nkeys or bcrypt"

// Texts of the server when it could not store something; nothing else covers all cases.
// nats-server itself looks for noRoom in errors.
const (
	noRoom   = "no space left"
	outOf    = "JetStream out of "
	disabled = ", will be DISABLED"
)

// tellsFull reports whether a message says that the disk is full. Only errors
// and texts of JetStream's own count: clients choose names that are in others,
// and in formats too.
func tellsFull(format string, v []any) bool {
	if strings.HasPrefix(format, outOf) && strings.HasSuffix(format, disabled) {
		return true
	}
	return slices.ContainsFunc(v, func(a any) bool {
		err, ok := a.(error)
		return ok && strings.Contains(err.Error(), noRoom)
	})
}

// logger passes the server's warnings and errors on. It keeps the last error,
// so that a failed start can say why.
type logger struct {
	log   *slog.Logger
	fatal chan struct{} // closed by the first fatal error
	full  atomic.Bool   // something could not be stored
	once  sync.Once
	mu    sync.Mutex
	last  string
}

func newLogger(log *slog.Logger) *logger { return &logger{log: log, fatal: make(chan struct{})} }

func (l *logger) write(level slog.Level, format string, v ...any) {
	msg := fmt.Sprintf(format, v...)
	if tellsFull(format, v) {
		l.full.Store(true)
	}
	if level >= slog.LevelError {
		l.keep(msg)
	}
	l.log.Log(context.Background(), level, msg, slog.String("component", "nats-server"))
}

// keep takes an error for the last one, unless the start has failed: later errors are
// not the cause.
func (l *logger) keep(msg string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.fatal:
	default:
		l.last = msg
	}
}

func (l *logger) lastError() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *logger) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v...) }
func (l *logger) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v...) }
func (l *logger) Debugf(string, ...any)           {}
func (l *logger) Tracef(string, ...any)           {}

func (l *logger) Warnf(format string, v ...any) {
	if format != plaintextWarning {
		l.write(slog.LevelWarn, format, v...)
	}
}

// clientError takes what a connection of Connect cannot return to a caller;
// the NATS client would print it. A slow consumer is no concern: followers
// read again what was dropped.
func (l *logger) clientError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	l.log.Warn("nats client", slog.String("subject", subject), slog.Any("error", err))
}

// Fatalf fails the start. The server's own logger would end the process; the
// server calls this while it starts and then gives up by itself.
func (l *logger) Fatalf(format string, v ...any) {
	l.once.Do(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last = fmt.Sprintf(format, v...)
		close(l.fatal)
	})
}
