package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
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

// Set are a log's streams as they are on the server, and in which of them sessions are.
type Set struct {
	*link.Link
	erasing    chan struct{}        // the place of the message that is being overwritten
	found      []*natsjs.StreamInfo // as they were at the start
	Durability eventlog.Durability

	places  atomic.Pointer[layout.Places]
	permit  *permit
	growing sync.Mutex // held while places is replaced
	// OnPartition are called for each partition that the log gets when it grows, with its first
	// sequence, before a session is placed there.
	OnPartition []func(p int, begins uint64)
	grownAt     atomic.Int64 // when this process has taken over the last growth, in Unix ns
	swept       atomic.Int64 // of how many growths the strays were removed
	seenGrowth  uint64       // the message of a growth that watchGrowth has seen last
	seenSince   time.Time    // when it has seen it first
}

// Open finds a log's streams, or makes them.
func Open(ctx context.Context, conn *link.Link) (*Set, error) {
	l := &Set{Link: conn, erasing: make(chan struct{}, 1), permit: newPermit()}
	if l.Opts.Partitions > layout.MaxPartitions {
		return nil, fmt.Errorf("jetstream: at most %d partitions", layout.MaxPartitions)
	}
	var err error
	switch {
	case l.Opts.ReadOnly || l.Opts.Existing:
		err = l.findPartitions(ctx)
	case l.Opts.Restores != nil:
		l.places.Store(&l.Opts.Restores.Places)
	default:
		err = l.choosePartitions(ctx)
	}
	if err != nil {
		return nil, err
	}
	if l.Opts.Memory && l.Opts.Replicas > 1 && !l.Opts.ReadOnly {
		return nil, fmt.Errorf("jetstream: a log in memory has one replica: more would look durable and not be")
	}
	if l.Opts.Restores == nil && !l.Opts.ReadOnly && !l.Opts.Existing {
		if err := l.checkWhole(ctx); err != nil {
			return nil, err
		}
	}
	names := []string{layout.BlobStream, layout.PlacesStream}
	for p := range layout.MaxPartitions { // the log may grow
		names = append(names, layout.LogStream(p), layout.SegmentStream(p))
		l.BoundBatches(layout.LogSubjects+strconv.Itoa(p), layout.SegmentSubjects+strconv.Itoa(p))
	}
	l.StartSync(names)
	for p := range l.Partitions() {
		for _, c := range l.StreamsOf(p) {
			if err := l.ensureStream(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	if err := l.awaitAll(ctx); err != nil {
		return nil, err
	}
	if l.Opts.Restores != nil {
		for i, settled := range l.places.Load().Settled {
			if err := l.storeSettled(ctx, i, settled, nil); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	return l, l.loadPlaces(ctx)
}

// awaitAll returns when the streams are on the disk as they are when the log is opened:
// a process that was killed may have left something that it had not waited for.
func (l *Set) awaitAll(ctx context.Context) error {
	if !l.GroupSync() {
		return nil
	}
	if err := l.Opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	for _, s := range l.found {
		l.NoteSynced(s.Config.Name, s.State.LastSeq)
	}
	return nil
}

// StreamsOf returns the streams of partition p as they should be.
func (l *Set) StreamsOf(p int) []natsjs.StreamConfig {
	return ConfigsOf(l.Opts, l.places.Load().Numbers, p)
}

// ConfigsOf returns the streams of partition p as they should be, of a log that has had these
// numbers of partitions; the first partition brings what all share.
func ConfigsOf(o link.Options, numbers []int, p int) []natsjs.StreamConfig {
	base := natsjs.StreamConfig{
		Storage:            o.Storage(),
		Retention:          natsjs.LimitsPolicy,
		Discard:            natsjs.DiscardNew,
		Replicas:           o.Replicas,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{metadataPartitions: joined(numbers) + storedFormat},
	}
	firstSequence := uint64(0)
	if r := o.Restores; r != nil {
		base.Metadata[MetadataRestoring] = r.ID
		firstSequence = r.First[p]
	}
	subjects := layout.LogSubjects + strconv.Itoa(p) + ".*"
	records, segments := base, base
	records.FirstSeq = firstSequence
	records.Name = layout.LogStream(p)
	records.Description = "helixd: the log of agent sessions"
	records.Subjects = []string{subjects}
	if o.GroupSync() {
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
	segments.Compression = CompressionOf(o.Replicas)
	if p > 0 {
		return []natsjs.StreamConfig{records, segments}
	}
	blobs := base
	blobs.Name = layout.BlobStream
	blobs.Description = "helixd: large payloads, in parts"
	blobs.Subjects = []string{layout.BlobSubjects + ">"}
	if len(numbers) == 1 {
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

// choosePartitions takes those that the log has. If that are fewer than wanted, Open has it grow.
func (l *Set) choosePartitions(ctx context.Context) error {
	wanted := l.Opts.Partitions
	s, err := l.FindStream(ctx, layout.LogStream(0))
	switch {
	case errors.Is(err, natsjs.ErrStreamNotFound):
		l.setNumbers([]int{cmp.Or(wanted, l.Opts.NewPartitions())})
		return nil
	case err != nil:
		return err
	}
	numbers, err := l.numbersOfLog(ctx, s)
	switch {
	case err != nil && wanted == 0:
		return err
	case err != nil || 0 < wanted && wanted < numbers[len(numbers)-1]:
		l.setNumbers([]int{wanted}) // which CheckPartitions refuses
		return nil
	case wanted > numbers[len(numbers)-1] && !l.Opts.Grow:
		has := numbers[len(numbers)-1]
		return fmt.Errorf("jetstream: the log has %d partitions, not %d: keep %d, or %s", has, wanted, has, GrowAdvice)
	}
	l.setNumbers(numbers)
	return nil
}

// findPartitions takes over what the first stream says.
func (l *Set) findPartitions(ctx context.Context) error {
	s, err := l.FindStream(ctx, layout.LogStream(0))
	if err != nil {
		return err
	}
	numbers, err := l.numbersOfLog(ctx, s)
	if err != nil {
		return err
	}
	l.setNumbers(numbers)
	l.Opts.Replicas = s.CachedInfo().Config.Replicas
	l.Opts.Memory = s.CachedInfo().Config.Storage == natsjs.MemoryStorage
	return nil
}

// numbersOfLog returns which numbers of partitions a log has had, by its first stream and by growths
// that died before they had noted it there.
func (l *Set) numbersOfLog(ctx context.Context, s natsjs.Stream) ([]int, error) {
	config := s.CachedInfo().Config
	numbers, ok := NumbersIn(config)
	if !ok {
		return nil, fmt.Errorf("jetstream: stream %s is not of a helixd log", config.Name)
	}
	for {
		g, _, err := l.growthOf(ctx, len(numbers)-1)
		if err != nil || g.Phase != grown {
			return numbers, err
		}
		numbers = append(numbers, g.To)
	}
}

// NumbersIn returns which numbers of partitions the log of a stream has had, the present one last. ok
// is false if it is not of a helixd log, or of one that a later version has written.
func NumbersIn(config natsjs.StreamConfig) (numbers []int, ok bool) {
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

func (l *Set) FindStream(ctx context.Context, name string) (s natsjs.Stream, err error) {
	err = link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		return l.Step(ctx, "stream", func(ctx context.Context) error {
			s, err = l.JS.Stream(ctx, name)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", name, err)
	}
	return s, nil
}

// createStream makes a stream, or finds that somebody else just has.
func (l *Set) createStream(ctx context.Context, want natsjs.StreamConfig) (s natsjs.Stream, err error) {
	err = link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		return l.Step(ctx, "create", func(ctx context.Context) error {
			s, err = CreateOrFind(ctx, l.JS, want)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return s, nil
}

// CreateOrFind makes a stream, or finds the one with other settings that somebody
// has made. While a cluster is making that one, settle calls again.
func CreateOrFind(ctx context.Context, js natsjs.JetStream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	s, err := js.CreateStream(ctx, want)
	if !errors.Is(err, natsjs.ErrStreamNameAlreadyInUse) {
		return s, err
	}
	if s, err = js.Stream(ctx, want.Name); errors.Is(err, natsjs.ErrStreamNotFound) {
		return nil, fmt.Errorf("%w: %w", link.ErrBeingMade, err)
	}
	return s, err
}

func (l *Set) ensureStream(ctx context.Context, want natsjs.StreamConfig) error {
	s, err := l.FindStream(ctx, want.Name)
	if errors.Is(err, natsjs.ErrStreamNotFound) && !l.Opts.ReadOnly && !l.Opts.Existing {
		s, err = l.createStream(ctx, want)
	}
	if err != nil {
		return err
	}
	if err := checkRestored(s.CachedInfo().Config, want); err != nil {
		return err
	}
	if err := CheckPartitions(s.CachedInfo().Config, want); err != nil {
		return err
	}
	if !l.Opts.ReadOnly && !l.Opts.Existing && l.Opts.Restores == nil {
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
func (l *Set) update(ctx context.Context, s natsjs.Stream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	config := s.CachedInfo().Config
	live, marked := config.Metadata[metadataLive] == want.Metadata[metadataLive], config.Metadata[metadataPartitions] == want.Metadata[metadataPartitions]
	if live && (marked || l.Opts.Server == nil) {
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
	s, err := l.JS.UpdateStream(ctx, config)
	if err == nil {
		err = l.AwaitRemoved(ctx, want.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return s, nil
}

// CheckPartitions refuses a stream of another log. One that was there before a growth may
// still say what it said then: the first stream alone decides.
func CheckPartitions(got, want natsjs.StreamConfig) error {
	has, _ := NumbersIn(got)
	wanted, _ := NumbersIn(want)
	if len(has) > 0 && len(has) <= len(wanted) && slices.Equal(has, wanted[:len(has)]) {
		return nil
	}
	return fmt.Errorf("jetstream: stream %s was created for %q partitions, not %s", want.Name, strings.TrimSuffix(got.Metadata[metadataPartitions], storedFormat), joined(wanted))
}

// GrowAdvice is how a log grows to which NATS clients can write.
const GrowAdvice = "start a node once without nats.user, or without nats.listen and nats.websocket.listen, to have the log grow"

// FeedForgotten is after what time the server removes the consumer of a node that was killed.
const FeedForgotten = time.Minute

// Count is "1 stream" or "3 streams".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
