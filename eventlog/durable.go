package eventlog

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog/fact"
)

// durableLogs is the prefix of the ids of durable streams' logs. The ids of sessions can't
// begin with it, see [ValidateClientSessionID].
const durableLogs = "~stream/"

// MaxDurableName is the longest name of a durable stream, in bytes.
const MaxDurableName = MaxSessionID - len(durableLogs)

// DurableLogID returns the id of the log of the durable stream with a name.
func DurableLogID(name string) string { return durableLogs + name }

// IsDurableLog reports whether a log is a durable stream's and no session's.
func IsDurableLog(id string) bool { return strings.HasPrefix(id, durableLogs) }

// NotSession reports whether a log is a memory scope's or a durable stream's, and so no
// session's.
func NotSession(id string) bool { return IsMemoryLog(id) || IsDurableLog(id) }

// durable checks the facts of durable streams.
func (k *checker) durable(f fact.Fact) {
	switch f := f.(type) {
	case *fact.DurableCreated:
		k.text("contentType", f.ContentType, MaxID)
		if f.TTL != nil {
			k.notNegative("ttl", *f.TTL)
		}
		if f.ExpiresAt != "" {
			if _, err := time.Parse(time.RFC3339, f.ExpiresAt); err != nil {
				k.fail("expiresAt", "must be a time of RFC 3339")
			}
		}
	case *fact.DurableAppended:
		if !utf8.ValidString(f.Text) {
			k.fail("text", "must be valid UTF-8")
		}
		for _, m := range f.Messages {
			k.json("messages", m)
		}
		k.size("writerSeq", len(f.WriterSeq), MaxID)
	}
}
