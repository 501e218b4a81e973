package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	// metadataPartitions is the stream metadata key of the partitions: how many there are, after
	// those that there were before the log grew. Its value has storedFormat at the end, and a log
	// that has grown a comma: a version of helixd that can't read that refuses the log for it.
	metadataPartitions = "helix.partitions"
	// storedFormat is of records with headerEnvelope and of segments in columns.
	storedFormat = " v2"
	// metadataLive is the key of a stream whose live records the log publishes, and not
	// the server.
	metadataLive = "helix.live"
	liveByLog    = "log"
)

// streamsOf returns the streams of partition p as they should be; the first
// partition brings what all share.
func (l *Log) streamsOf(p int) []natsjs.StreamConfig {
	base := natsjs.StreamConfig{
		Storage:            l.opts.storage(),
		Retention:          natsjs.LimitsPolicy,
		Discard:            natsjs.DiscardNew,
		Replicas:           l.opts.Replicas,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{metadataPartitions: joined(l.places.Numbers) + storedFormat},
	}
	firstSequence := uint64(0)
	if r := l.opts.restores; r != nil {
		base.Metadata[metadataRestoring] = r.id
		firstSequence = r.first(p)
	}
	subjects := layout.LogSubjects + strconv.Itoa(p) + ".*"
	records, segments := base, base
	records.FirstSeq = firstSequence
	records.Name = layout.LogStream(p)
	records.Description = "helixd: the log of agent sessions"
	records.Subjects = []string{subjects}
	if l.opts.groupSync() {
		records.Metadata = maps.Clone(base.Metadata)
		records.Metadata[metadataLive] = liveByLog
	} else {
		records.RePublish = &natsjs.RePublish{Source: subjects, Destination: layout.LiveSubjects + "{{wildcard(1)}}"}
	}
	segments.Name = layout.SegmentStream(p)
	segments.Description = "helixd: sealed segments of the log"
	segments.Subjects = []string{
		layout.SegmentSubjects + strconv.Itoa(p) + ".*", layout.FloorSubjects + strconv.Itoa(p) + ".*", layout.ErasedSubjects + strconv.Itoa(p) + ".*",
	}
	segments.Compression = CompressionOf(l.opts.Replicas)
	if p > 0 {
		return []natsjs.StreamConfig{records, segments}
	}
	blobs := base
	blobs.Name = layout.BlobStream
	blobs.Description = "helixd: large payloads, in parts"
	blobs.Subjects = []string{layout.BlobSubjects + ">"}
	if len(l.places.Numbers) == 1 {
		return []natsjs.StreamConfig{records, segments, blobs}
	}
	settled := base
	settled.Name = layout.PlacesStream
	settled.Description = "helixd: which sessions stayed in their partitions when the log grew"
	settled.Subjects = []string{layout.PlacesSubjects + "*.*"}
	return []natsjs.StreamConfig{records, segments, blobs, settled}
}

// CompressionOf is how streams with so many replicas may be compressed. A server
// of a cluster that is started again may compress the block to which it then
// appends (2.15.2, with SyncAlways): the replica is unreadable from then on.
func CompressionOf(replicas int) natsjs.StoreCompression {
	if replicas > 1 {
		return natsjs.NoCompression
	}
	return natsjs.S2Compression
}

// newPartitions is how many a new log has if nobody says: more than one server
// shares the work that leaders have.
func (o Options) newPartitions() int {
	if o.Replicas > 1 {
		return 16
	}
	return 1
}

// choosePartitions takes those that the log has. It returns to how many it is to grow, 0 if
// it is not.
func (l *Log) choosePartitions(ctx context.Context) (growTo int, err error) {
	wanted := l.opts.Partitions
	s, err := l.findStream(ctx, layout.LogStream(0))
	switch {
	case errors.Is(err, natsjs.ErrStreamNotFound):
		l.setNumbers([]int{cmp.Or(wanted, l.opts.newPartitions())})
		return 0, nil
	case err != nil:
		return 0, err
	}
	numbers, err := numbersOfLog(s)
	switch {
	case err != nil && wanted == 0:
		return 0, err
	case err != nil || 0 < wanted && wanted < numbers[len(numbers)-1]:
		l.setNumbers([]int{wanted}) // which checkPartitions refuses
		return 0, nil
	}
	l.setNumbers(numbers)
	if wanted > l.opts.Partitions {
		return wanted, nil
	}
	return 0, nil
}

// findPartitions takes over what the first stream says.
func (l *Log) findPartitions(ctx context.Context) error {
	s, err := l.findStream(ctx, layout.LogStream(0))
	if err != nil {
		return err
	}
	numbers, err := numbersOfLog(s)
	if err != nil {
		return err
	}
	l.setNumbers(numbers)
	l.opts.Replicas = s.CachedInfo().Config.Replicas
	l.opts.Memory = s.CachedInfo().Config.Storage == natsjs.MemoryStorage
	return nil
}

func numbersOfLog(s natsjs.Stream) ([]int, error) {
	config := s.CachedInfo().Config
	numbers, ok := numbersIn(config)
	if !ok {
		return nil, fmt.Errorf("jetstream: stream %s is not of a helixd log", config.Name)
	}
	return numbers, nil
}

// numbersIn returns which numbers of partitions the log of a stream has had, the present one last. ok
// is false if it is not of a helixd log, or of one that a later version has written.
func numbersIn(config natsjs.StreamConfig) (numbers []int, ok bool) {
	for text := range strings.SplitSeq(strings.TrimSuffix(config.Metadata[metadataPartitions], storedFormat), ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, layout.Growing(numbers)
}

func joined(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func (l *Log) findStream(ctx context.Context, name string) (s natsjs.Stream, err error) {
	err = Settle(ctx, l.nc, func(ctx context.Context) error {
		return l.step(ctx, "stream", func(ctx context.Context) error {
			s, err = l.js.Stream(ctx, name)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", name, err)
	}
	return s, nil
}

// createStream makes a stream, or finds that somebody else just has.
func (l *Log) createStream(ctx context.Context, want natsjs.StreamConfig) (s natsjs.Stream, err error) {
	err = Settle(ctx, l.nc, func(ctx context.Context) error {
		return l.step(ctx, "create", func(ctx context.Context) error {
			s, err = CreateOrFind(ctx, l.js, want)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return s, nil
}

// CreateOrFind makes a stream, or finds the one with other settings that somebody
// has made. While a cluster is making that one, Settle calls again.
func CreateOrFind(ctx context.Context, js natsjs.JetStream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	s, err := js.CreateStream(ctx, want)
	if !errors.Is(err, natsjs.ErrStreamNameAlreadyInUse) {
		return s, err
	}
	if s, err = js.Stream(ctx, want.Name); errors.Is(err, natsjs.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: %w", errBeingMade, err)
	}
	return s, err
}

func (l *Log) ensureStream(ctx context.Context, want natsjs.StreamConfig) error {
	s, err := l.findStream(ctx, want.Name)
	if errors.Is(err, natsjs.ErrStreamNotFound) && !l.opts.ReadOnly && !l.opts.Existing {
		s, err = l.createStream(ctx, want)
	}
	if err != nil {
		return err
	}
	if err := checkRestored(s.CachedInfo().Config, want); err != nil {
		return err
	}
	if err := checkPartitions(s.CachedInfo().Config, want); err != nil {
		return err
	}
	if !l.opts.ReadOnly && !l.opts.Existing && l.opts.restores == nil {
		if s, err = l.update(ctx, s, want); err != nil {
			return err
		}
	}
	return l.checkStream(s.CachedInfo(), want)
}

// update has a stream's live records published by the server or by the log, as want
// says, if it is the other way, and marks the stream as one that older versions can't read.
// The settings of an outside deployment are its operator's: there only new streams have the
// mark.
func (l *Log) update(ctx context.Context, s natsjs.Stream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	config := s.CachedInfo().Config
	live, marked := config.Metadata[metadataLive] == want.Metadata[metadataLive], config.Metadata[metadataPartitions] == want.Metadata[metadataPartitions]
	if live && (marked || l.opts.Server == nil) {
		return s, nil
	}
	config.Metadata = maps.Clone(config.Metadata)
	config.Metadata[metadataPartitions] = want.Metadata[metadataPartitions]
	if !live {
		delete(config.Metadata, metadataLive)
		if by := want.Metadata[metadataLive]; by != "" {
			config.Metadata[metadataLive] = by
		}
		config.RePublish = want.RePublish
	}
	s, err := l.js.UpdateStream(ctx, config)
	if err == nil {
		err = l.awaitRemoved(ctx, want.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return s, nil
}

// checkPartitions refuses a stream of another log. One that was there before a growth may
// still say what it said then: the first stream alone decides.
func checkPartitions(got, want natsjs.StreamConfig) error {
	has, _ := numbersIn(got)
	wanted, _ := numbersIn(want)
	if len(has) > 0 && len(has) <= len(wanted) && slices.Equal(has, wanted[:len(has)]) {
		return nil
	}
	return fmt.Errorf("jetstream: stream %s was created for %q partitions, not %s", want.Name, strings.TrimSuffix(got.Metadata[metadataPartitions], storedFormat), joined(wanted))
}

// secureDelete overwrites a message's bytes, but in a stream that is scrubbed. One
// that is gone is no error.
func (l *Log) secureDelete(ctx context.Context, stream string, seq uint64) error {
	if l.scrubs(stream) {
		return l.remove(ctx, stream, seq)
	}
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.SecureDeleteMsg)
}

// remove deletes a message; its bytes stay until its block is compacted.
func (l *Log) remove(ctx context.Context, stream string, seq uint64) error {
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.DeleteMsg)
}

func (l *Log) deleteMessage(ctx context.Context, stream string, seq uint64, by func(natsjs.Stream, context.Context, uint64) error) error {
	err := Settle(ctx, l.nc, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, stream)
		if err == nil {
			err = l.step(ctx, "delete", func(ctx context.Context) error { return by(s, ctx, seq) })
		}
		return err
	})
	if err == nil {
		return nil
	}
	// The server's answer does not tell one that is gone from other failures.
	if _, gerr := l.messageAt(ctx, stream, seq); errors.Is(gerr, errNoMessage) {
		return nil
	}
	return fmt.Errorf("jetstream: delete %d of %s: %w", seq, stream, err)
}
