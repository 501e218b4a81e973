package httpapi

import (
	"encoding/json"
	"fmt"
)

// Limits of what a session is listed by.
const (
	maxLabel = 256 // bytes of a user's id or a tag
	maxTags  = 32
)

// labels are what a new session is listed by, as whoever begins it says.
type labels struct {
	userID string
	tags   []string
}

// labels reads the optional members userId and tags.
func (o *object) labels() (l labels) {
	if o.has("userId") {
		l.userID = o.label("userId")
	}
	raw := o.members["tags"]
	if raw == nil {
		return l
	}
	var tags []*string
	if json.Unmarshal(raw, &tags) != nil || tags == nil || len(tags) > maxTags {
		o.fail("tags", fmt.Sprintf("must be an array of at most %d strings", maxTags))
		return l
	}
	for i, tag := range tags {
		if tag == nil || *tag == "" || len(*tag) > maxLabel {
			o.fail(fmt.Sprintf("tags[%d]", i), fmt.Sprintf("must be a string of 1 to %d bytes", maxLabel))
			return l
		}
		l.tags = append(l.tags, *tag)
	}
	return l
}

func (o *object) label(name string) string {
	s := o.word(name)
	if len(s) > maxLabel {
		o.fail(name, fmt.Sprintf("must have at most %d bytes", maxLabel))
	}
	return s
}
