package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/pack"
)

const (
	// leastPage is the least size of a piece that is stored as a page.
	leastPage = pack.LeastPiece
	// pageRequest is how many pages one request asks for: a server answers with at most
	// 1,024.
	pageRequest = 512
)

// hash identifies a page by its content.
type hash [16]byte

func hashOf(page []byte) hash {
	sum := sha256.Sum256(page)
	return hash(sum[:16])
}

// piece is a part of a fold: bytes of the fold itself, or a page.
type piece struct {
	own  []byte
	page hash
	size int // of the page; 0: bytes of the fold itself
}

// divide returns the pieces of a fold, and the content of its pages.
func divide(s snapshot.Saved) (pieces []piece, pages map[hash][]byte) {
	pages = map[hash][]byte{}
	from, own := 0, 0 // the bytes from own on are in no page
	for _, cut := range append(slices.Clip(s.Cuts), len(s.State)) {
		if cut-from >= leastPage {
			if own < from {
				pieces = append(pieces, piece{own: s.State[own:from]})
			}
			for page := range slices.Chunk(s.State[from:cut], partBytes) {
				h := hashOf(page)
				pages[h] = page
				pieces = append(pieces, piece{page: h, size: len(page)})
			}
			own = cut
		}
		from = cut
	}
	if own < len(s.State) {
		pieces = append(pieces, piece{own: s.State[own:]})
	}
	return pieces, pages
}

// listed encodes pieces. A piece of own bytes is twice its size and the bytes; a page is
// twice its size plus one and the page's hash.
func listed(pieces []piece) (b []byte) {
	for _, p := range pieces {
		if p.size > 0 {
			b = binary.AppendUvarint(b, uint64(p.size)<<1|1)
			b = append(b, p.page[:]...)
		} else {
			b = binary.AppendUvarint(b, uint64(len(p.own))<<1)
			b = append(b, p.own...)
		}
	}
	return b
}

var errPieces = errors.New("saved folds: list of pieces is damaged")

func piecesOf(b []byte) (pieces []piece, err error) {
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n>>1 > maxBytes {
			return nil, errPieces
		}
		b = b[used:]
		var p piece
		if n&1 == 1 {
			if len(b) < len(p.page) || n>>1 == 0 {
				return nil, errPieces
			}
			p.size = int(n >> 1)
			b = b[copy(p.page[:], b):]
		} else {
			if n>>1 > uint64(len(b)) {
				return nil, errPieces
			}
			p.own, b = b[:n>>1], b[n>>1:]
		}
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// savePages stores a fold and those of its pages that are not stored yet. Most are; a
// page that was lost is then available to older folds again.
func (f *Folds) savePages(ctx context.Context, stream natsjs.Stream, prefix string, s snapshot.Saved) (size int, err error) {
	info, err := stream.Info(ctx, natsjs.WithSubjectFilter(prefix+"page.*"))
	if err != nil {
		return 0, fmt.Errorf("saved folds: %w", err)
	}
	pieces, pages := divide(s)
	for h, page := range pages {
		subject := pageSubject(prefix, h)
		if info.State.Subjects[subject] > 0 {
			continue
		}
		packed := s2.Encode(nil, page)
		if _, err := f.once(ctx, &nats.Msg{Subject: subject, Data: packed}); err != nil {
			return size, err
		}
		size += len(packed)
	}
	n, err := f.put(ctx, stream, prefix+mark{s.Sequence, s.Form}.token(), s, listed(pieces))
	return size + n, err
}

func pageSubject(prefix string, h hash) string { return prefix + "page." + hex.EncodeToString(h[:]) }

// assemble joins a packed fold's pieces. The result is empty if a page is missing. As in
// last, the leader is asked for the pages that a replica does not have.
func (f *Folds) assemble(ctx context.Context, stream natsjs.Stream, prefix string, body []byte) ([]byte, error) {
	pieces, err := piecesOf(body)
	if err != nil {
		return nil, nil //nolint:nilerr // it is found to be damaged
	}
	size, missing := 0, map[string]bool{}
	for _, p := range pieces {
		if size += len(p.own) + p.size; size > maxBytes {
			return nil, nil
		}
		if p.size > 0 {
			missing[pageSubject(prefix, p.page)] = true
		}
	}
	pages := make(map[string][]byte, len(missing))
	for len(missing) > 0 {
		before := len(missing)
		if err := f.get(ctx, stream.CachedInfo().Config.Name, missing, pages); err != nil {
			return nil, err
		}
		if len(missing) == before {
			break
		}
	}
	for subject := range missing {
		m, err := f.ofLeader(ctx, stream, subject)
		if m == nil || err != nil {
			return nil, err
		}
		pages[subject] = m.Data
	}
	state, at := make([]byte, size), 0
	for _, p := range pieces {
		to := state[at : at+len(p.own)+p.size]
		at += len(to)
		if p.size == 0 {
			copy(to, p.own)
			continue
		}
		packed := pages[pageSubject(prefix, p.page)]
		if n, err := s2.DecodedLen(packed); err != nil || n != p.size {
			return nil, nil //nolint:nilerr // it is found to be damaged
		}
		if _, err := s2.Decode(to, packed); err != nil {
			return nil, nil //nolint:nilerr // as above
		}
	}
	return state, nil
}

// get reads the messages of the missing subjects into got, in one request that any
// replica may answer, and removes those that it received from missing.
func (f *Folds) get(ctx context.Context, stream string, missing map[string]bool, got map[string][]byte) error {
	inbox := f.nc.NewInbox()
	answers := make(chan *nats.Msg, pageRequest+1) // plus the end marker
	sub, err := f.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return fmt.Errorf("saved folds: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	subjects := slices.Collect(maps.Keys(missing))
	req, err := json.Marshal(map[string]any{"multi_last": subjects[:min(len(subjects), pageRequest)]})
	if err != nil {
		return err
	}
	if err := f.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, req); err != nil {
		return fmt.Errorf("saved folds: %w", err)
	}
	silence := time.NewTimer(f.try)
	defer silence.Stop()
	for {
		select {
		case m := <-answers:
			silence.Reset(f.try)
			switch status := m.Header.Get("Status"); status {
			case "":
				subject := m.Header.Get(natsjs.SubjectHeader)
				got[subject] = m.Data
				delete(missing, subject)
			case "204", "404": // the end, or no message found
				return nil
			default:
				return fmt.Errorf("saved folds: pages: status %s", status)
			}
		case <-silence.C:
			return fmt.Errorf("saved folds: pages: %w", nats.ErrTimeout)
		case <-ctx.Done():
			return fmt.Errorf("saved folds: pages: %w", context.Cause(ctx))
		}
	}
}
