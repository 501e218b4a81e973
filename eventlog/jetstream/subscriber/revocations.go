package subscriber

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// RevokedStream is the stream of revocations, and RevokedSubjects are its subjects.
const (
	RevokedStream   = "HELIX_REVOKED"
	RevokedSubjects = revokedSubjects + "*"
)

const (
	revokedSubjects = "helix.revoked." // followed by the session's key
	revokedNews     = "helix.revocation."

	// keptFor is how long a revocation is kept: longer than any right lasts.
	keptFor = MaxTTL + time.Hour
	// holdsFor is how long it is effective: longer than any right lasts, and less than
	// the stream keeps it. Rights that are issued after that have generation 0.
	holdsFor = MaxTTL + 30*time.Minute
	// lookEvery is how often the stream is read if no notification arrives, since one may
	// be lost.
	lookEvery = 5 * time.Second
	// lookTimeout bounds one read.
	lookTimeout = 5 * time.Second
	// loadedWithin is how long a client waits for a node that has not read the
	// revocations yet. Its server ends the connection sooner.
	loadedWithin = 5 * time.Second
	// leastForget is the least number of revocations from which on the expired ones are
	// removed.
	leastForget = 1024
)

// Revocations are the rights that are revoked before they expire. A JetStream stream has
// the last revocation of each session, whose sequence is the generation of the rights
// that are issued afterwards: a right of an earlier generation is revoked. Clocks matter
// only for a revocation's age. The stream has hashes of session ids.
//
// Every node reads the stream. Revocations may be used from many goroutines.
type Revocations struct {
	loaded chan struct{} // closed when all stored revocations were read

	mu       sync.RWMutex
	latest   map[key]revocation
	forgetAt int

	// Set by Open.
	nc       *nats.Conn
	stream   natsjs.Stream
	js       natsjs.JetStream
	drop     func()
	sync     func(context.Context) error // nil: an answer is durable
	cancel   context.CancelFunc
	finished chan struct{}
	last     uint64 // the last sequence that was read
}

type (
	key        [sha256.Size]byte // the hash of a session's live subject
	revocation struct {
		generation uint64
		stored     time.Time
	}
)

func keyOf(subject string) key { return sha256.Sum256([]byte(subject)) }

// parseKey returns the key at the end of a subject, which anyone may have written.
func parseKey(text string) (k key, ok bool) {
	if len(text) != hex.EncodedLen(len(k)) { // hex.Decode would write beyond the key
		return k, false
	}
	_, err := hex.Decode(k[:], []byte(text))
	return k, err == nil
}

func (k key) subject() string { return revokedSubjects + hex.EncodeToString(k[:]) }

// NewRevocations returns revocations that Open has to read. Until then all rights are
// revoked.
func NewRevocations() *Revocations {
	return &Revocations{loaded: make(chan struct{}), latest: map[key]revocation{}}
}

// Open creates the stream if it is missing, and reads it until Close. It calls drop after
// revocations, to disconnect the clients whose rights are revoked. sync returns when what
// the server has answered is durable; nil: it already is. Failed reads are logged and
// retried.
func (r *Revocations) Open(ctx context.Context, nc *nats.Conn, replicas int, drop func(), sync func(context.Context) error, log *slog.Logger) error {
	js, err := jetstream.NewJetStream(nc)
	if err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	err = jetstream.Settle(ctx, nc, func(ctx context.Context) (err error) {
		r.stream, err = js.CreateOrUpdateStream(ctx, streamConfig(replicas))
		return err
	})
	if err != nil {
		return fmt.Errorf("revocations: stream %s: %w", RevokedStream, err)
	}
	news := make(chan *nats.Msg, 64) // when it is full, the reader will read anyway
	sub, err := nc.ChanSubscribe(revokedNews+"*", news)
	if err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	r.nc, r.js, r.drop, r.sync, r.finished = nc, js, drop, sync, make(chan struct{})
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(r.finished)
		defer sub.Unsubscribe() //nolint:errcheck // the connection may be closed
		r.follow(ctx, news, log)
	}()
	return nil
}

func streamConfig(replicas int) natsjs.StreamConfig {
	return natsjs.StreamConfig{
		Name: RevokedStream, Description: "helixd: revoked rights of NATS subscribers", Subjects: []string{RevokedSubjects},
		Storage: natsjs.FileStorage, MaxMsgsPerSubject: 1, MaxAge: keptFor, Replicas: max(replicas, 1),
		RePublish: &natsjs.RePublish{Source: RevokedSubjects, Destination: revokedNews + "{{wildcard(1)}}", HeadersOnly: true},
		// Not AllowDirect: a replica that lags would return an earlier generation.
	}
}

// Close ends reading. It is idempotent.
func (r *Revocations) Close() {
	if r.cancel != nil {
		r.cancel()
		<-r.finished
	}
}

func (r *Revocations) follow(ctx context.Context, news <-chan *nats.Msg, log *slog.Logger) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	failing := false
	for {
		err := r.read(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("revocations of NATS subscribers can't be read; trying again", "error", err)
		}
		failing = err != nil
		select {
		case <-news:
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// read reads the revocations since its last call.
func (r *Revocations) read(ctx context.Context) error {
	for found := false; ; found = true {
		try, cancel := context.WithTimeout(ctx, lookTimeout)
		m, err := r.stream.GetMsg(try, r.last+1, natsjs.WithGetMsgSubject(revokedSubjects+"*"))
		cancel()
		if err != nil {
			if errors.Is(err, natsjs.ErrMsgNotFound) {
				err = nil
				r.isLoaded()
			}
			if found {
				r.drop()
			}
			return err
		}
		r.last = m.Sequence
		if k, ok := parseKey(strings.TrimPrefix(m.Subject, revokedSubjects)); ok {
			r.add(k, revocationOf(m))
		}
	}
}

func (r *Revocations) isLoaded() {
	select {
	case <-r.loaded:
	default: // only the reader closes it
		close(r.loaded)
	}
}

func (r *Revocations) add(k key, v revocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.generation <= r.latest[k].generation {
		return
	}
	r.latest[k] = v
	if len(r.latest) < r.forgetAt {
		return
	}
	expired := time.Now().Add(-keptFor)
	maps.DeleteFunc(r.latest, func(_ key, v revocation) bool { return v.stored.Before(expired) })
	r.forgetAt = max(leastForget, 2*len(r.latest))
}

// Revoked reports whether a right, given by its subject and the name in its JWT, is
// revoked. If the revocations were not read yet, it waits for up to loadedWithin, and
// then returns true.
func (r *Revocations) Revoked(subject, name string) bool {
	select {
	case <-r.loaded:
	default:
		select {
		case <-r.loaded:
		case <-time.After(loadedWithin):
			return true
		}
	}
	generation, err := strconv.ParseUint("0"+name, 10, 64)
	if err != nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	latest := r.latest[keyOf(subject)]
	return generation < latest.generation && time.Since(latest.stored) < holdsFor
}

// Revoke revokes all rights for a session that were issued before. When it returns they
// are revoked on this node; other nodes follow at once, or as soon as they can reach the
// stream. Errors: [eventlog.ErrUnavailable].
func (r *Revocations) Revoke(ctx context.Context, session string) error {
	k := keyOf(layout.LiveSubject(session))
	var ack *natsjs.PubAck
	err := jetstream.Settle(ctx, r.nc, func(ctx context.Context) (err error) {
		ack, err = r.js.Publish(ctx, k.subject(), nil)
		return err
	})
	if err == nil && r.sync != nil {
		err = r.sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("subscriber: revoke: %w: %w", eventlog.ErrUnavailable, err)
	}
	r.add(k, revocation{ack.Sequence, time.Now()})
	r.drop()
	return nil
}

// Generation returns the generation that a right for the session must have: 0 if none was
// revoked. Errors: [eventlog.ErrUnavailable].
func (r *Revocations) Generation(ctx context.Context, session string) (generation uint64, err error) {
	err = jetstream.Settle(ctx, r.nc, func(ctx context.Context) error {
		m, err := r.stream.GetLastMsgForSubject(ctx, keyOf(layout.LiveSubject(session)).subject())
		switch {
		case errors.Is(err, natsjs.ErrMsgNotFound):
			return nil
		case err != nil:
			return err
		}
		generation = revocationOf(m).generation
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("subscriber: generation: %w: %w", eventlog.ErrUnavailable, err)
	}
	return generation, nil
}
