package jetstream

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

const (
	logSubjects     = "helix.log."
	liveSubjects    = "helix.live."
	segmentSubjects = "helix.seg."
	floorSubjects   = "helix.floor."
	erasedSubjects  = "helix.erased."
	blobSubjects    = "helix.blob."
)

func logSubject(session string, partition int) string {
	return logSubjects + strconv.Itoa(partition) + "." + Token(session)
}

func segmentSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", segmentSubjects, partition, Token(session))
}

func floorSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", floorSubjects, partition, Token(session))
}

func erasedSubject(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s", erasedSubjects, partition, Token(session))
}

// blobPrefix is what the subjects of all the session's large payloads begin
// with.
func blobPrefix(session string, partition int) string {
	return fmt.Sprintf("%s%d.%s.", blobSubjects, partition, Token(session))
}

// LiveSubject is where a session's records are republished once they are
// stored.
func LiveSubject(session string) string { return liveSubjects + Token(session) }

// Token is a session id as a subject token: [A-Za-z0-9_-] stand for
// themselves and every other byte is percent-encoded, so that no id can hold
// a dot, a wildcard or a NUL.
func Token(session string) string {
	return escape(session, func(c byte) bool {
		return c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	})
}

// Untoken is the inverse of Token.
func Untoken(token string) (id string, ok bool) {
	id, err := url.PathUnescape(token)
	return id, err == nil && id != "" && Token(id) == token
}

// sessionOf is Untoken of a session's id.
func sessionOf(token string) (id string, ok bool) {
	id, ok = Untoken(token)
	return id, ok && eventlog.ValidateSessionID(id) == nil
}

// headerValue makes any string fit a header line: visible ASCII stays.
func headerValue(s string) string {
	return escape(s, func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' })
}

func escape(s string, plain func(byte) bool) string {
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
