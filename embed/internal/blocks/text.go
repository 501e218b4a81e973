package blocks

import (
	"bytes"
)

// HoldsBefore reports whether a block has one of the texts in a record from before a time, in
// nanoseconds since 1970. A record that can't be read counts.
func HoldsBefore(raw []byte, before uint64, texts []string) bool {
	for _, text := range texts {
		if !bytes.Contains(raw, []byte(text)) {
			continue
		}
		for at := 0; at+recordHeader <= len(raw); {
			h := headerOf(raw[at:])
			if !h.fits(len(raw) - at) {
				return bytes.Contains(raw[at:], []byte(text))
			}
			if h.time < before && bytes.Contains(raw[at:at+h.size], []byte(text)) {
				return true
			}
			at += h.size
		}
	}
	return false
}
