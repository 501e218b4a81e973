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
	"github.com/helixd/helixd/eventlog/version"
)

const (
	// metadataPartitions is the stream metadata key of the number of partitions, after
	// the earlier numbers if the log has grown, and of the log's format: "1,4 v2". A
	// version of helixd refuses a log if it does not understand the value.
	metadataPartitions = "helix.partitions"
	// formatMark separates the partitions from version.Format; without it, it is 1.
	formatMark = " v"
	// metadataHelixd is the key of the version of helixd that has set the log's format.
	metadataHelixd = "helix.helixd"
	// metadataLive is the key of a stream whose live records the log publishes instead of
	// the server.
	metadataLive = "helix.live"
	liveByLog    = "log"
)

// Set is the streams of a log as they are on the server, and the partition of each
// session.
type Set struct {
	*link.Link
	erasing    chan struct{}        // a slot for the one message that is being overwritten
	found      []*natsjs.StreamInfo // as found by Open
	durability atomic.Pointer[eventlog.Durability]

	places  atomic.Pointer[layout.Places]
	permit  *permit
	grow    sync.Mutex // held by the one growth that this process makes
	growing sync.Mutex // held while places is replaced
	// OnPartition are called for each partition that the log gets by a growth, with its
	// first sequence, before a session is placed there.
	OnPartition []func(p int, begins uint64)
	grownAt     atomic.Int64 // when this process has applied the last growth, in Unix ns
	swept       atomic.Int64 // number of growths whose strays were removed
	seenGrowth  uint64       // the last message of a growth that watchGrowth has seen
	seenSince   time.Time    // when it first saw it
}

// Open finds a log's streams, or creates them.
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
	for p := range l.Partitions() {
		if err := l.stage(p); err != nil {
			return nil, err
		}
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

// awaitAll returns when the streams, as they are at opening, are on the disk: a process
// that was killed may have stored something without waiting for the disk.
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

// stage has the streams of partition p stage their batches in memory.
func (l *Set) stage(p int) error {
	if !l.GroupSync() {
		return nil
	}
	var names []string
	for _, c := range l.StreamsOf(p) {
		names = append(names, c.Name)
	}
	if err := l.Opts.Server.Stage(names...); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

// StreamsOf returns the settings that the streams of partition p must have.
func (l *Set) StreamsOf(p int) []natsjs.StreamConfig {
	return ConfigsOf(l.Opts, l.places.Load().Numbers, p)
}

// ConfigsOf returns the settings of the streams of partition p in a log that has had
// these numbers of partitions. Partition 0 includes the streams that all partitions
// share.
func ConfigsOf(o link.Options, numbers []int, p int) []natsjs.StreamConfig {
	base := natsjs.StreamConfig{
		Storage:            o.Storage(),
		Retention:          natsjs.LimitsPolicy,
		Discard:            natsjs.DiscardNew,
		Replicas:           o.Replicas,
		AllowDirect:        true,
		AllowAtomicPublish: true,
		Metadata: map[string]string{
			metadataPartitions: joined(numbers) + formatMark + strconv.Itoa(version.Format), metadataHelixd: version.Current(),
		},
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

// CompressionOf implements [jetstream.CompressionOf].
func CompressionOf(replicas int) natsjs.StoreCompression {
	if replicas > 1 {
		return natsjs.NoCompression
	}
	return natsjs.S2Compression
}

// choosePartitions uses the partitions that the log has. If they are fewer than wanted,
// Open grows the log.
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
	_, newer := errors.AsType[*version.NewerError](err)
	switch {
	case err != nil && (wanted == 0 || newer):
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

// findPartitions reads the numbers of partitions from the first stream.
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

// numbersOfLog returns the numbers of partitions that a log has had: from its first
// stream, and from growths whose process died before it stored them there.
func (l *Set) numbersOfLog(ctx context.Context, s natsjs.Stream) ([]int, error) {
	config := s.CachedInfo().Config
	if err := CheckFormat(config); err != nil {
		return nil, err
	}
	numbers, ok := NumbersIn(config)
	if !ok {
		return nil, fmt.Errorf("jetstream: stream %s is not of a helixd log", config.Name)
	}
	for {
		g, _, err := l.growthOf(ctx, len(numbers)-1)
		more := append(numbers, g.To)
		if err != nil || g.Phase != grown || !layout.Growing(more) {
			return numbers, err
		}
		numbers = more
	}
}

// formatOf returns the format of a log's stream; 0: it is of no helixd log.
func formatOf(config natsjs.StreamConfig) int {
	_, text, marked := strings.Cut(config.Metadata[metadataPartitions], formatMark)
	if !marked {
		return 1
	}
	n, _ := strconv.Atoi(text)
	return n
}

// CheckFormat returns a version.NewerError if a stream is of a log with a later format.
func CheckFormat(config natsjs.StreamConfig) error {
	if err := version.Check("the log", formatOf(config), config.Metadata[metadataHelixd]); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}

func partitionsIn(config natsjs.StreamConfig) string {
	text, _, _ := strings.Cut(config.Metadata[metadataPartitions], formatMark)
	return text
}

// NumbersIn returns the numbers of partitions that the log of a stream has had, the
// present one last. ok is false if the stream is not of a helixd log.
func NumbersIn(config natsjs.StreamConfig) (numbers []int, ok bool) {
	if formatOf(config) < 1 {
		return nil, false
	}
	for text := range strings.SplitSeq(partitionsIn(config), ",") {
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

// createStream creates a stream, or finds one that another node has just created.
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

// CreateOrFind creates a stream, or finds one with other settings that another node has
// created. While a cluster is creating that one, Settle calls again.
func CreateOrFind(ctx context.Context, js natsjs.JetStream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	s, err := js.CreateStream(ctx, want)
	if errors.Is(err, natsjs.ErrStreamNameAlreadyInUse) {
		s, err = js.Stream(ctx, want.Name)
	}
	if errors.Is(err, natsjs.ErrStreamNotFound) { // either request may be answered so
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
	if !l.Opts.ReadOnly && l.Opts.Restores == nil {
		if s, err = l.update(ctx, s, want); err != nil {
			return err
		}
	}
	return l.checkStream(s.CachedInfo(), want)
}

// update changes an existing stream if want says that the log, not the server, publishes
// its live records, or the reverse, or if its log has an older format. The other settings
// of an outside deployment are its operator's.
func (l *Set) update(ctx context.Context, s natsjs.Stream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	config := s.CachedInfo().Config
	live, marked := config.Metadata[metadataLive] == want.Metadata[metadataLive], config.Metadata[metadataPartitions] == want.Metadata[metadataPartitions]
	older := formatOf(config) < version.Format
	if !older && (l.Opts.Existing || live && (marked || l.Opts.Server == nil)) {
		return s, nil
	}
	config.Metadata = maps.Clone(config.Metadata)
	if older {
		config.Metadata[metadataHelixd] = want.Metadata[metadataHelixd]
	}
	config.Metadata[metadataPartitions] = want.Metadata[metadataPartitions]
	if !live && !l.Opts.Existing {
		delete(config.Metadata, metadataLive)
		if by := want.Metadata[metadataLive]; by != "" {
			config.Metadata[metadataLive] = by
		}
		config.RePublish = want.RePublish
	}
	err := link.Settle(ctx, l.Conn, func(ctx context.Context) (err error) {
		s, err = l.JS.UpdateStream(ctx, config)
		return err
	})
	if err == nil {
		err = l.AwaitRemoved(ctx, want.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return s, nil
}

// CheckPartitions returns an error if a stream belongs to another log. A stream from
// before a growth may still have the number of that time: only the first stream decides.
func CheckPartitions(got, want natsjs.StreamConfig) error {
	has, _ := NumbersIn(got)
	wanted, _ := NumbersIn(want)
	if len(has) > 0 && len(has) <= len(wanted) && slices.Equal(has, wanted[:len(has)]) {
		return nil
	}
	return fmt.Errorf("jetstream: stream %s was created for %q partitions, not %s", want.Name, partitionsIn(got), joined(wanted))
}

// GrowAdvice says how to grow a log to which NATS clients can write.
const GrowAdvice = "start a node once without nats.user, or without nats.listen and nats.websocket.listen, to have the log grow"

// FeedForgotten is after what time the server removes the consumer of a node that was
// killed.
const FeedForgotten = time.Minute

// Count is "1 stream" or "3 streams".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
