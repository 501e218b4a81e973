package durable

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// Cursors count intervals, so that caches in front of the server can give one answer to all
// that ask within one, and none of them for ever (PROTOCOL.md, section 10.1).
const (
	cursorInterval = 20 * time.Second
	mostJitter     = time.Hour
	maxCursor      = 1 << 62
)

var cursorEpoch = time.Date(2024, time.October, 9, 0, 0, 0, 0, time.UTC)

// cursor returns the cursor of an answer to a request with another one, or "".
func cursor(was string, now time.Time) string {
	current := int64(now.Sub(cursorEpoch) / cursorInterval)
	if n, err := strconv.ParseInt(was, 10, 64); err == nil && n >= current && n < maxCursor {
		current = n + 1 + rand.Int64N(int64(mostJitter/cursorInterval))
	}
	return strconv.FormatInt(current, 10)
}
