package httpapi

import (
	"encoding/json"
	"fmt"
)

// Limits of what a session, or a memory, is listed by.
const (
	maxLabel = 256 // bytes of a user's id or a tag
	maxTags  = 32
)

// labels are what a new session is listed by, as the caller that begins it says.
type labels struct {
	userID string
	tags   []string
}

// labels reads the optional members userId and tags.
func labelsOf(o *object) (l labels) {
	if o.has("userId") {
		l.userID = labelOf(o, "userId")
	}
	l.tags = tagsOf(o)
	return l
}

// tags reads the optional member tags.
func tagsOf(o *object) (all []string) {
	raw := o.members["tags"]
	if raw == nil {
		return nil
	}
	var tags []*string
	if json.Unmarshal(raw, &tags) != nil || tags == nil || len(tags) > maxTags {
		o.fail("tags", fmt.Sprintf("must be an array of at most %d strings", maxTags))
		return nil
	}
	for i, tag := range tags {
		if tag == nil || *tag == "" || len(*tag) > maxLabel {
			o.fail(fmt.Sprintf("tags[%d]", i), fmt.Sprintf("must be a string of 1 to %d bytes", maxLabel))
			return nil
		}
		all = append(all, *tag)
	}
	return all
}

func labelOf(o *object, name string) string {
	s := o.word(name)
	if len(s) > maxLabel {
		o.fail(name, fmt.Sprintf("must have at most %d bytes", maxLabel))
	}
	return s
}
