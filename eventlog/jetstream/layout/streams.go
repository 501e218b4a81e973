package layout

import (
	"strconv"
	"strings"
)

// LogStreams is the prefix of the names of the log's streams.
const LogStreams = "HELIX_LOG_"

func LogStream(partition int) string { return LogStreams + strconv.Itoa(partition) }

// SegmentStreams is the prefix of the names of the segments' streams.
const SegmentStreams = "HELIX_SEG_"

func SegmentStream(partition int) string { return SegmentStreams + strconv.Itoa(partition) }

// BlobStream has the blobs of all partitions.
const BlobStream = "HELIX_BLOBS"

// PlacesStream has, in a log that has grown, the sessions that stay where an earlier
// number of partitions put them.
const PlacesStream = "HELIX_PLACES"

// StreamPrefix is the prefix of the names of all of helixd's streams.
const StreamPrefix = "HELIX_"

// families are the subjects whose second token is a partition, and their streams.
var families = [...]struct{ subjects, streams string }{
	{LogSubjects, LogStreams}, {SegmentSubjects, SegmentStreams}, {FloorSubjects, SegmentStreams}, {ErasedSubjects, SegmentStreams},
}

// StreamOf returns the log's stream that has a subject.
func StreamOf(subject string) string {
	switch {
	case strings.HasPrefix(subject, BlobSubjects):
		return BlobStream
	case strings.HasPrefix(subject, PlacesSubjects):
		return PlacesStream
	}
	for _, family := range families {
		if rest, ok := strings.CutPrefix(subject, family.subjects); ok {
			partition, _, _ := strings.Cut(rest, ".")
			return family.streams + partition
		}
	}
	return ""
}
