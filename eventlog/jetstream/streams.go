package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

// metadataPartitions is the stream metadata key that fixes the partitions.
const metadataPartitions = "helix.partitions"

// blobStream holds the large payloads of all partitions.
const blobStream = "HELIX_BLOBS"

func streamName(partition int) string { return fmt.Sprintf("HELIX_LOG_%d", partition) }

func segmentStream(partition int) string { return fmt.Sprintf("HELIX_SEG_%d", partition) }

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
		Metadata:           map[string]string{metadataPartitions: strconv.Itoa(l.opts.Partitions)},
	}
	subjects := logSubjects + strconv.Itoa(p) + ".*"
	records, segments := base, base
	records.Name = streamName(p)
	records.Description = "helixd: the log of agent sessions"
	records.Subjects = []string{subjects}
	records.RePublish = &natsjs.RePublish{Source: subjects, Destination: liveSubjects + "{{wildcard(1)}}"}
	segments.Name = segmentStream(p)
	segments.Description = "helixd: sealed segments of the log"
	segments.Subjects = []string{
		segmentSubjects + strconv.Itoa(p) + ".*", floorSubjects + strconv.Itoa(p) + ".*", erasedSubjects + strconv.Itoa(p) + ".*",
	}
	segments.Compression = natsjs.S2Compression
	if p > 0 {
		return []natsjs.StreamConfig{records, segments}
	}
	blobs := base
	blobs.Name = blobStream
	blobs.Description = "helixd: large payloads, in parts"
	blobs.Subjects = []string{blobSubjects + ">"}
	return []natsjs.StreamConfig{records, segments, blobs}
}

// findPartitions takes over what the first stream says.
func (l *Log) findPartitions(ctx context.Context) error {
	s, err := l.js.Stream(ctx, streamName(0))
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", streamName(0), err)
	}
	n, err := strconv.Atoi(s.CachedInfo().Config.Metadata[metadataPartitions])
	if err != nil || n < 1 || n > maxPartitions {
		return fmt.Errorf("jetstream: stream %s is not of a helixd log", streamName(0))
	}
	l.opts.Partitions = n
	l.opts.Replicas = s.CachedInfo().Config.Replicas
	l.opts.Memory = s.CachedInfo().Config.Storage == natsjs.MemoryStorage
	return nil
}

func (l *Log) ensureStream(ctx context.Context, want natsjs.StreamConfig) error {
	s, err := l.js.Stream(ctx, want.Name)
	if errors.Is(err, natsjs.ErrStreamNotFound) && !l.opts.ReadOnly && !l.opts.Existing {
		s, err = l.js.CreateStream(ctx, want)
	}
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	if got := s.CachedInfo().Config.Metadata[metadataPartitions]; got != want.Metadata[metadataPartitions] {
		return fmt.Errorf("jetstream: stream %s was created for %q partitions, not %s",
			want.Name, got, want.Metadata[metadataPartitions])
	}
	return l.checkStream(s.CachedInfo(), want)
}

// secureDelete overwrites a message's bytes. One that is gone is no error.
func (l *Log) secureDelete(ctx context.Context, stream string, seq uint64) error {
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.SecureDeleteMsg)
}

// remove deletes a message; its bytes stay until its block is compacted.
func (l *Log) remove(ctx context.Context, stream string, seq uint64) error {
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.DeleteMsg)
}

func (l *Log) deleteMessage(ctx context.Context, stream string, seq uint64, by func(natsjs.Stream, context.Context, uint64) error) error {
	s, err := l.js.Stream(ctx, stream)
	if err == nil {
		err = by(s, ctx, seq)
	}
	if err == nil {
		return nil
	}
	// The server's answer does not tell one that is gone from other failures.
	if _, gerr := l.messageAt(ctx, stream, seq); errors.Is(gerr, errNoMessage) {
		return nil
	}
	return fmt.Errorf("jetstream: delete %d of %s: %w", seq, stream, err)
}
