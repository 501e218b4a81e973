package layout

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

const (
	LogSubjects     = "helix.log."
	LiveSubjects    = "helix.live."
	SegmentSubjects = "helix.seg."
	FloorSubjects   = "helix.floor."
	ErasedSubjects  = "helix.erased."
	BlobSubjects    = "helix.blob."
)

func LogSubject(session string, partition int) string {
	return LogSubjects + strconv.Itoa(partition) + "." + Token(session)
}

func SegmentSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", SegmentSubjects, partition, Token(session))
}

func FloorSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", FloorSubjects, partition, Token(session))
}

func ErasedSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", ErasedSubjects, partition, Token(session))
}

// BlobPrefix is the prefix of the subjects of all blobs of a session.
func BlobPrefix(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s.", BlobSubjects, partition, Token(session))
}

// LiveSubject is the subject on which a session's records are republished once they are
// stored.
func LiveSubject(session string) string { return LiveSubjects + Token(session) }

// Token encodes a session id as a subject token: [A-Za-z0-9_-] are unchanged and every
// other byte is percent-encoded, so that no id can add a dot, a wildcard or a NUL.
func Token(session string) string {
	return Escape(session, func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	})
}

// Untoken is the inverse of Token.
func Untoken(token string) (id string, ok bool) {
	id, err := url.PathUnescape(token)
	return id, err == nil && id != "" && Token(id) == token
}

// SessionID is Untoken for a session's id.
func SessionID(token string) (id string, ok bool) {
	id, ok = Untoken(token)
	return id, ok && eventlog.ValidateSessionID(id) == nil
}

func Escape(s string, plain func(byte) bool) string {
	clean := 0
	for clean < len(s) && plain(s[clean]) {
		clean++
	}
	if clean == len(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// SessionOf returns the session of a subject of helixd's streams,
// helix.<kind>.<partition>.<session>, and the rest after the next dot.
func SessionOf(subject string) (session, rest string, ok bool) {
	parts := strings.SplitN(subject, ".", 5)
	if len(parts) < 4 || parts[0] != "helix" {
		return "", "", false
	}
	if session, ok = SessionID(parts[3]); !ok {
		return "", "", false
	}
	if len(parts) == 5 {
		rest = parts[4]
	}
	return session, rest, true
}

const PlacesSubjects = "helix.places."

func PlacesSubject(growth, part int) string {
	return fmt.Sprintf("%s%d.%d", PlacesSubjects, growth, part)
}

// GrowthSubject is the subject with the phase of the log's growth with that number, from
// 0.
func GrowthSubject(growth int) string { return PlacesSubjects + strconv.Itoa(growth) + ".state" }

// GrowthSeenSubject is the subject on which processes report that they have seen it.
func GrowthSeenSubject(growth int) string { return PlacesSubjects + strconv.Itoa(growth) + ".seen" }

// ReportSubject is the subject on which a server reports that it has nothing left of a
// session.
func ReportSubject(session string, partition int, server string) string {
	return ErasedSubject(session, partition) + "~" + Token(server)
}
