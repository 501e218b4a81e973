package control

import (
	"encoding/json"
	"fmt"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Limits of the labels of sessions and memories.
const (
	maxLabel = 256 // bytes of a user's id or a tag
	maxTags  = 32
)

// Labels are the labels by which a new session is listed.
type Labels struct {
	UserID string
	Tags   []string
}

// LabelsOf reads the optional members userId and tags.
func LabelsOf(o *web.Object) (l Labels) {
	if o.Has("userId") {
		l.UserID = labelOf(o, "userId")
	}
	l.Tags = tagsOf(o)
	return l
}

// tagsOf reads the optional member tags.
func tagsOf(o *web.Object) (all []string) {
	raw := o.Members["tags"]
	if raw == nil {
		return nil
	}
	var tags []*string
	if json.Unmarshal(raw, &tags) != nil || tags == nil || len(tags) > maxTags {
		o.Fail("tags", fmt.Sprintf("must be an array of at most %d strings", maxTags))
		return nil
	}
	for i, tag := range tags {
		if tag == nil || *tag == "" || len(*tag) > maxLabel {
			o.Fail(fmt.Sprintf("tags[%d]", i), fmt.Sprintf("must be a string of 1 to %d bytes", maxLabel))
			return nil
		}
		all = append(all, *tag)
	}
	return all
}

func labelOf(o *web.Object, name string) string {
	s := o.Word(name)
	if len(s) > maxLabel {
		o.Fail(name, fmt.Sprintf("must have at most %d bytes", maxLabel))
	}
	return s
}
