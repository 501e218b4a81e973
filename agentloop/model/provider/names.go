package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// maxName is the longest id or name of a call, in bytes, that every provider
// takes.
const maxName = 64

var (
	usableName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	notInName  = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// CallID returns an id that all providers accept for a call: the id itself if they do,
// otherwise another one in its place. A conversation may have ids of one provider
// and be continued with another one.
func CallID(id string) string {
	if usableName.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// CallName is the name of a tool that a model has called, as providers take it
// back: models also call what does not exist.
func CallName(name string) string {
	if usableName.MatchString(name) {
		return name
	}
	name = notInName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}
