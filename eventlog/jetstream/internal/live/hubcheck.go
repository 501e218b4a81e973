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

// A live record that is lost shows when the next one names it, but for the last
// one: a leader that dies after it has stored a record does not republish it, and
// what is between two servers is lost with their connection. So a hub asks the
// partition's leader for its last sequence, in one request for all sessions. Only
// if that has moved it asks for those records of the silent sessions that are newer
// than what is known of them, 200 sessions in a request. A silent session in a
// silent partition costs nothing.
const (
	// CheckEvery leaves room for two rounds within 2 s: the first one finds that
	// a session is silent.
	checkEvery = 750 * time.Millisecond
	// checkTimeout bounds a round; an election takes several.
	checkTimeout = 2 * time.Second
	// checkSessions is for how many sessions one request asks.
	checkSessions = 200
	// askEvery is how often a silent session is asked for its head: of one that
	// was erased there is no record that could be newer.
	askEvery = time.Minute
)

// feedCheck is what checks know of a feed. The hub's lock guards it.
type feedCheck struct {
	mark  uint64 // up to where nothing is lost: readers have it, or were sent to the log
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

// check is one round. What can't be answered now is asked in the next one.
func (h *hub) check() {
	silent := h.silent()
	if len(silent) == 0 || !h.log.Conn.IsConnected() { // a reconnect sends all to the log
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	state, err := h.log.StateOf(ctx, layout.LogStream(h.partition))
	if err != nil {
		return
	}
	h.mu.Lock()
	h.known = max(h.known, state.Last)
	silent = slices.DeleteFunc(silent, func(f *subscription) bool { return f.check.mark >= state.Last && !f.stale() })
	slices.SortFunc(silent, func(a, b *subscription) int { return cmp.Compare(a.check.mark, b.check.mark) })
	h.mu.Unlock()
	for some := range slices.Chunk(silent, checkSessions) {
		h.checkSome(ctx, some, state.Last)
	}
}

// silent returns the feeds that nothing has come to since the last round. A later
// record of the others shows what they have missed.
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

// stale reports whether the session is to be asked for its head. The caller has
// the hub's lock.
func (f *subscription) stale() bool { return time.Since(f.check.asked) >= askEvery }

// checkSome sends the readers of feeds to the log whose session has a record
// behind what is known. The feeds are sorted by that.
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
		// The log has nothing of these sessions: a purge has removed it. With the
		// session of the last record the answer says up to where it is.
		if m, merr := h.log.MessageAt(ctx, layout.LogStream(h.partition), last); merr == nil {
			messages, end, err = h.lastRecords(ctx, append(subjects, m.Subject), from)
		}
	}
	if err != nil {
		return
	}
	// Any replica may have answered, and says up to where it is.
	upTo, err := strconv.ParseUint(wire.First(end, wire.HeaderUpTo), 10, 64)
	none := err != nil // it has not the last record either: each session is asked for its head
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
		missed, known := cut || newest[f] > max(mark, f.last.Load()), upTo
		if ask {
			head, err := h.log.Head(ctx, f.session)
			if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
				continue
			}
			missed = missed || err != nil || head > max(mark, f.last.Load())
			known = last
		}
		if missed {
			f.allBehind()
		}
		h.mu.Lock()
		if f.check.mark = max(f.check.mark, known); ask {
			f.check.asked = time.Now()
		}
		h.mu.Unlock()
	}
}

// lastRecords asks for the last records of subjects, as far as they are not before from.
func (h *hub) lastRecords(ctx context.Context, subjects []string, from uint64) ([]*nats.Msg, nats.Header, error) {
	return h.log.GetMany(ctx, layout.LogStream(h.partition), len(subjects), map[string]any{
		"multi_last": subjects, "seq": from, "max_bytes": link.PageBytes,
	})
}
