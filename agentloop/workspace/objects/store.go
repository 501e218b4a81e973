package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/eventlog"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	subjects     = "helix.work."
	goneSubjects = "helix.workgone."
	headKind     = "head."
	snapKind     = "snap."
	partKind     = "part."
	treeKind     = "tree"

	// partBytes is the size of a content's parts: an outside deployment takes
	// messages of 1 MiB by default.
	partBytes = 128 << 10
	// patience bounds a change, elections of leaders included.
	patience = 30 * time.Second
)

var (
	// errChanged: the head is not the one that was read any more.
	errChanged = errors.New("objects: another writer has changed the workspace")
	// errMissing: a content is not there, or not what its hash says.
	errMissing = errors.New("objects: a content is damaged or missing")
)

// prefix is what the subjects of a tree begin with.
func prefix(root string) string { return subjects + layout.Token(root) + "." }

// content is the address of a content within its tree.
type content struct {
	Hash string `json:"hash"`
	Size int64  `json:"size"`
}

func contentOf(data []byte) content {
	sum := sha256.Sum256(data)
	return content{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// parts is at least one: an empty content has an empty part.
func (c content) parts() int { return max(int((c.Size+partBytes-1)/partBytes), 1) }

func (c content) subject(root string, part int) string {
	return prefix(root) + partKind + c.Hash + "." + strconv.Itoa(part)
}

// among reports whether all of its parts are among a tree's subjects.
func (c content) among(there map[string]uint64, root string) bool {
	for i := range c.parts() {
		if there[c.subject(root, i)] == 0 {
			return false
		}
	}
	return true
}

// newJetStream returns JetStream's API. A server that is alone is asked once. Acknowledgements
// that don't come in time are given up: nats.go waits for 4,000 at most, and refuses to
// publish when that many are lost.
func newJetStream(nc *nats.Conn, patience time.Duration) (natsjs.JetStream, error) {
	return natsjs.New(nc, natsjs.WithDefaultTimeout(patience), natsjs.WithPublishAsyncTimeout(patience))
}

// limited bounds what has no deadline.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

// put stores a content, also if it is there: a collection may be about to
// remove that one.
func (p *Provider) put(ctx context.Context, root string, data []byte) (content, error) {
	c := contentOf(data)
	err := logjs.Settle(ctx, p.nc, func(ctx context.Context) error {
		var acks []natsjs.PubAckFuture
		for i := range c.parts() {
			part := data[i*partBytes : min((i+1)*partBytes, len(data))]
			ack, err := p.js.PublishMsgAsync(&nats.Msg{Subject: c.subject(root, i), Data: part})
			if err != nil {
				return err
			}
			acks = append(acks, ack)
		}
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("store a content: %w", err)
	}
	return c, nil
}

// get returns a content. Error: errMissing.
func (p *Provider) get(ctx context.Context, root string, c content) ([]byte, error) {
	data := make([]byte, 0, min(max(c.Size, 0), workspace.MaxFile)) // that of an imported snapshot may be anything
	for i := range c.parts() {
		m, err := p.last(ctx, c.subject(root, i))
		if errors.Is(err, natsjs.ErrMsgNotFound) {
			return nil, errMissing
		}
		if err != nil {
			return nil, err
		}
		data = append(data, m.Data...)
	}
	if contentOf(data) != c {
		return nil, errMissing
	}
	return data, nil
}

func (p *Provider) putTree(ctx context.Context, root string, t filetree.Tree) (content, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return content{}, err
	}
	return p.put(ctx, root, text)
}

func (p *Provider) getTree(ctx context.Context, root string, c content) (t filetree.Tree, err error) {
	text, err := p.get(ctx, root, c)
	if err != nil {
		return nil, err
	}
	return t, json.Unmarshal(text, &t)
}

func headSubject(s workspace.Session) string { return prefix(s.Root) + headKind + layout.Token(s.ID) }

// putHead makes a manifest the session's, if its head is still the message
// with that sequence; 0: if there is none. Error: errChanged, also where a lost
// answer hid that it was obeyed.
func (p *Provider) putHead(ctx context.Context, s workspace.Session, expected uint64, manifest content) error {
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	_, err = p.publish(ctx, &nats.Msg{Subject: headSubject(s), Data: text}, natsjs.WithExpectLastSequencePerSubject(expected))
	if logjs.IsConflict(err) {
		return errChanged
	}
	return err
}

func (p *Provider) publish(ctx context.Context, m *nats.Msg, o ...natsjs.PublishOpt) (sequence uint64, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err = logjs.Settle(ctx, p.nc, func(ctx context.Context) error {
		ack, err := p.js.PublishMsg(ctx, m, o...)
		if err == nil {
			sequence = ack.Sequence
		}
		return err
	})
	return sequence, err
}

// last returns a subject's last message. The stream's leader answers. Error:
// natsjs.ErrMsgNotFound.
func (p *Provider) last(ctx context.Context, subject string) (m *natsjs.RawStreamMsg, err error) {
	err = logjs.Settle(ctx, p.nc, func(ctx context.Context) (err error) {
		m, err = p.stream.GetLastMsgForSubject(ctx, subject)
		return err
	})
	return m, err
}

// next returns the first message from a sequence on that a filter matches.
func (p *Provider) next(ctx context.Context, filter string, from uint64) (m *natsjs.RawStreamMsg, err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	err = logjs.Settle(ctx, p.nc, func(ctx context.Context) (err error) {
		m, err = p.stream.GetMsg(ctx, from, natsjs.WithGetMsgSubject(filter))
		return err
	})
	return m, err
}

// subjects returns how many messages each subject has.
func (p *Provider) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	return logjs.Subjects(ctx, p.nc, Stream, filter)
}

// listing is subjects, with the server's time before it, by whose clock messages have theirs.
func (p *Provider) listing(ctx context.Context, filter string) (all map[string]uint64, now time.Time, err error) {
	err = logjs.Settle(ctx, p.nc, func(ctx context.Context) error {
		info, err := p.stream.Info(ctx)
		if err == nil {
			now = info.TimeStamp
		}
		return err
	})
	if err != nil {
		return nil, now, err
	}
	all, err = p.subjects(ctx, filter)
	return all, now, err
}

// erase overwrites the messages that a filter matches; with a sequence, those
// below it, with a time, those stored before it.
func (p *Provider) erase(ctx context.Context, filter string, below uint64, before time.Time) (n int, err error) {
	for at := uint64(1); ; at++ {
		m, err := p.next(ctx, filter, at)
		if errors.Is(err, natsjs.ErrMsgNotFound) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		at = m.Sequence
		if below > 0 && at >= below {
			return n, nil
		}
		if !before.IsZero() && !m.Time.Before(before) {
			continue
		}
		if err := p.overwrite(ctx, m.Sequence); err != nil {
			return n, err
		}
		n++
	}
}

// longestPause bounds the pause between two overwritten messages: what took
// longer waited for a leader, not for the disk.
const longestPause = 250 * time.Millisecond

// overwrite overwrites a message's bytes, and pauses as long as it took: the
// store is locked while it rewrites a block, and writers are to wait for one
// only. One that is gone is no error.
func (p *Provider) overwrite(ctx context.Context, sequence uint64) error {
	began := time.Now()
	try, cancel := limited(ctx)
	defer cancel()
	err := logjs.Settle(try, p.nc, func(ctx context.Context) error { return p.stream.SecureDeleteMsg(ctx, sequence) })
	if err != nil {
		// The answer does not distinguish a missing one from other failures.
		if _, gerr := p.stream.GetMsg(try, sequence); !errors.Is(gerr, natsjs.ErrMsgNotFound) {
			return err
		}
	}
	_ = eventlog.Sleep(ctx, min(time.Since(began), longestPause)) // the next one returns the error
	return nil
}
