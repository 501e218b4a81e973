package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A lost live record is noticed when the next one names it. For the last one that does
// not help: a leader that dies after it has stored a record does not republish it, and
// messages between two servers are lost with their connection. So a hub asks the
// partition's leader for its last sequence, in one request for all sessions. Only if that
// has moved, it requests those records of the silent sessions that are newer than the
// known ones, 200 sessions per request. A silent session in a silent partition costs
// nothing.
const (
	// checkEvery leaves room for two rounds within 2 s: the first one finds that a
	// session is silent.
	checkEvery = 750 * time.Millisecond
	// checkTimeout bounds a round; an election takes several.
	checkTimeout = 2 * time.Second
	// checkSessions is how many sessions one request covers.
	checkSessions = 200
	// askEvery is how often the head of a silent session is requested: an erased session
	// has no record that could be newer.
	askEvery = time.Minute
)

// feedCheck is the checks' state of a subscription. The hub's lock guards it.
type feedCheck struct {
	mark  uint64 // nothing up to here is lost: followers have it, or read the log
	seen  uint64 // the last live record, as of the last round
	asked time.Time
}

// watch checks until the log is closed.
func (h *hub) watch() {
	every := time.NewTicker(cmp.Or(h.log.Opts.CheckEvery, checkEvery))
	defer every.Stop()
	for {
		select {
		case <-every.C:
			h.check()
		case <-h.log.Closed:
			return
		}
	}
}

// check is one round. A request that fails is repeated in the next round.
func (h *hub) check() {
	silent := h.silent()
	if len(silent) == 0 || !h.log.Conn.IsConnected() { // after a reconnect all followers read the log
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	info, err := h.log.StreamInfo(ctx, layout.LogStream(h.partition), "")
	if err != nil {
		return
	}
	h.log.NoteFirst(h.partition, info.State.FirstSeq)
	newest := info.State.LastSeq
	h.mu.Lock()
	h.known = max(h.known, newest)
	silent = slices.DeleteFunc(silent, func(f *subscription) bool { return f.check.mark >= newest && !f.stale() })
	slices.SortFunc(silent, func(a, b *subscription) int { return cmp.Compare(a.check.mark, b.check.mark) })
	h.mu.Unlock()
	for some := range slices.Chunk(silent, checkSessions) {
		h.checkSome(ctx, some, newest)
	}
}

// silent returns the subscriptions to which nothing has come since the last round. For
// the others a later record shows what they have missed.
func (h *hub) silent() (silent []*subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.subscriptions {
		select {
		case <-f.ready:
		default:
			continue
		}
		last := f.last.Load()
		if last == f.check.seen {
			silent = append(silent, f)
		}
		f.check.seen, f.check.mark = last, max(f.check.mark, last)
	}
	return silent
}

// stale reports whether the session's head must be requested. The caller holds the hub's
// lock.
func (f *subscription) stale() bool { return time.Since(f.check.asked) >= askEvery }

// checkSome makes the followers of subscriptions read the log if the session has a record
// after the known ones. The subscriptions are sorted by that.
func (h *hub) checkSome(ctx context.Context, feeds []*subscription, last uint64) {
	subjects, bySubject := make([]string, len(feeds)), map[string]*subscription{}
	for i, f := range feeds {
		subjects[i] = layout.LogSubject(f.session, h.partition)
		bySubject[subjects[i]] = f
	}
	h.mu.Lock()
	from := feeds[0].check.mark + 1
	h.mu.Unlock()
	messages, end, err := h.lastRecords(ctx, subjects, from)
	if err == nil && wire.First(end, wire.HeaderUpTo) == "" {
		// The log has no message of these sessions: a purge has removed them. If the
		// request includes the session of the last record, the answer has a sequence.
		if m, merr := h.log.MessageAt(ctx, layout.LogStream(h.partition), last); merr == nil {
			messages, end, err = h.lastRecords(ctx, append(subjects, m.Subject), from)
		}
	}
	if err != nil {
		return
	}
	// Any replica may have answered, and states up to which sequence.
	upTo, err := strconv.ParseUint(wire.First(end, wire.HeaderUpTo), 10, 64)
	none := err != nil // it lacks the last record, too: request the head of each session
	cut := !none && wire.First(end, wire.HeaderPending) != "0"
	newest := map[*subscription]uint64{}
	for _, m := range messages {
		if f := bySubject[wire.First(m.Header, wire.HeaderSubject)]; f != nil {
			newest[f], _ = strconv.ParseUint(wire.First(m.Header, wire.HeaderSequence), 10, 64)
		}
	}
	for _, f := range feeds {
		h.mu.Lock()
		ask, mark := none || f.stale(), f.check.mark
		h.mu.Unlock()
		found, known := newest[f], upTo
		missed := cut || found > max(mark, f.last.Load())
		if ask {
			head, err := h.log.Head(ctx, f.session)
			if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
				continue
			}
			missed = missed || err != nil || head > max(mark, f.last.Load())
			found, known = max(found, head), last
		}
		if missed {
			link.Raise(&f.found, found)
			f.allBehind()
		}
		h.mu.Lock()
		if f.check.mark = max(f.check.mark, known); ask {
			f.check.asked = time.Now()
		}
		h.mu.Unlock()
	}
}

// lastRecords requests the last records of subjects that are not before from.
func (h *hub) lastRecords(ctx context.Context, subjects []string, from uint64) ([]*nats.Msg, nats.Header, error) {
	return h.log.GetMany(ctx, layout.LogStream(h.partition), len(subjects), map[string]any{
		"multi_last": subjects, "seq": from, "max_bytes": link.PageBytes,
	})
}
