package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// VerifySubjects implements [jetstream.Log.VerifySubjects].
func (l *Verifier) VerifySubjects(ctx context.Context, found func(integrity.Finding)) ([]string, error) {
	sessions, withBlobs := map[string]bool{}, map[string]bool{}
	for p := range l.Partitions() {
		for _, stream := range []string{layout.LogStream(p), layout.SegmentStream(p), layout.BlobStream} {
			if stream == layout.BlobStream && p > 0 { // shared by all partitions
				continue
			}
			subjects, err := link.Subjects(ctx, l.Conn, stream, ">")
			if err != nil {
				return nil, fmt.Errorf("jetstream: verify: stream %s: %w", stream, err)
			}
			for subject, n := range subjects {
				session, kind := l.owner(subject)
				switch kind {
				case "":
					found(integrity.Finding{
						Code:   integrity.FoundForeignSubject,
						Detail: fmt.Sprintf("%d messages of stream %s are on subject %q, where helixd stores none", n, stream, subject),
					})
				case layout.BlobSubjects:
					withBlobs[session] = true
				case layout.ErasedSubjects:
					if strings.Contains(subject, "~") { // a server's report: the mark has its own subject, if there is one
						continue
					}
					e, err := l.ErasingOf(ctx, session)
					if err != nil {
						return nil, fmt.Errorf("jetstream: verify: %w", err)
					}
					if e.At == 0 || e.Done || e.Head == 0 && e.Tombstone == 0 && e.Removed { // removed meanwhile, or for single messages only
						continue
					}
					found(integrity.Finding{
						Code: integrity.FoundErasing, Session: session,
						Detail: "the session was erased, and bytes of it may be left: erase it again",
					})
				default:
					sessions[session] = true
				}
			}
		}
	}
	for session := range withBlobs {
		if !sessions[session] {
			found(integrity.Finding{
				Code: integrity.FoundBlobUnused, Session: session,
				Detail: "there are large payloads of the session and no records: appends that failed, or the session is lost",
			})
		}
	}
	return slices.Sorted(maps.Keys(sessions)), nil
}

// owner returns the session to which a subject of the log's streams belongs, and the
// prefix of such subjects; empty if it belongs to none.
func (l *Verifier) owner(subject string) (session, kind string) {
	if strings.HasPrefix(subject, layout.ErasedSubjects) {
		subject, _, _ = strings.Cut(subject, "~") // a server's report
	}
	session, rest, ok := layout.SessionOf(subject)
	if !ok {
		return "", ""
	}
	p := l.PartitionOf(session)
	for _, kind := range []string{layout.LogSubjects, layout.SegmentSubjects, layout.FloorSubjects, layout.ErasedSubjects} {
		if subject == kind+strconv.Itoa(p)+"."+layout.Token(session) {
			return session, kind
		}
	}
	hash, part, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(part, 10, 32)
	_, bad := wire.ParseBlobRef(hash + ":1")
	if err != nil || bad != nil || subject != fmt.Sprintf("%s%s.%d", layout.BlobPrefix(session, p), hash, n) {
		return "", ""
	}
	return session, layout.BlobSubjects
}

// VerifyStreams implements [jetstream.Log.VerifyStreams].
func (l *Verifier) VerifyStreams(ctx context.Context, found func(integrity.Finding)) error {
	for p := range l.Partitions() {
		for _, want := range l.StreamsOf(p) {
			if err := l.verifyStream(ctx, want, found); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Verifier) verifyStream(ctx context.Context, want natsjs.StreamConfig, found func(integrity.Finding)) error {
	s, err := l.JS.Stream(ctx, want.Name)
	if err != nil {
		return fmt.Errorf("jetstream: verify: stream %s: %w", want.Name, err)
	}
	if err := streams.CheckSettings(s.CachedInfo().Config, want); err != nil {
		found(integrity.Finding{Code: integrity.FoundSettings, Detail: err.Error()})
	}
	if n := s.CachedInfo().State.NumDeleted; n > l.mostMissing {
		found(integrity.Finding{Code: integrity.FoundSequencesMissing, Detail: fmt.Sprintf(
			"%d sequences of stream %s hold nothing: they were removed, or are lost. They are too many to list, and so it was not checked whether the server has cut off what it could not read",
			n, want.Name)})
		return nil
	}
	state, err := l.streamState(ctx, want.Name, "")
	if err != nil {
		return err
	}
	if lost := state.Lost; lost != nil {
		detail := fmt.Sprintf("the server has cut %d bytes off stream %s, which it could not read", lost.Bytes, want.Name)
		if len(lost.Messages) > 0 {
			detail += fmt.Sprintf(", with the messages %s", ranges(lost.Messages))
		}
		found(integrity.Finding{Code: integrity.FoundStore, Detail: detail})
	}
	if strings.HasPrefix(want.Name, layout.LogStreams) && len(state.Missing) > 0 {
		found(integrity.Finding{Code: integrity.FoundSequencesMissing, Detail: fmt.Sprintf(
			"%d sequences of stream %s hold nothing: they were erased sessions', or are lost: %s",
			len(state.Missing), want.Name, ranges(state.Missing))})
	}
	return nil
}

// maxMissing is how many sequences without a message the server may list: the answer is
// one message, and if it is larger than what a client may leave unread, 64 MiB by
// default, the server closes the connection.
const maxMissing = 1_000_000

// maxRanges is how many ranges a finding names.
const maxRanges = 100

// ranges formats rising numbers as 1-3, 7.
func ranges(numbers []uint64) string {
	var parts []string
	for i := 0; i < len(numbers); {
		if len(parts) == maxRanges {
			parts = append(parts, "…")
			break
		}
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.FormatUint(numbers[i], 10)
		if j > i {
			part += "-" + strconv.FormatUint(numbers[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
