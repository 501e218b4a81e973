package link

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// subjectsPage is a part of a stream's subjects, sorted by bytes, from an offset on.
type subjectsPage struct {
	subjects map[string]uint64 // messages of each
	total    int               // of all subjects that match
}

// Subjects implements [jetstream.Subjects].
func Subjects(ctx context.Context, nc *nats.Conn, stream, filter string) (map[string]uint64, error) {
	return allSubjects(func(offset int) (page subjectsPage, err error) {
		err = Settle(ctx, nc, func(ctx context.Context) error {
			page, err = askSubjects(ctx, nc, stream, filter, offset)
			return err
		})
		return page, err
	})
}

// allSubjects returns the subjects of all pages. The server sorts its subjects again for
// each page, and subjects come and go meanwhile. So a page begins with the last subject
// of the page before it. If it begins with a later one, subjects were removed before it,
// and those after them have moved to the page before: then it asks again further back,
// as far as necessary. nats.go's Info does not notice, and does not end if a subject is
// created.
func allSubjects(ask func(offset int) (subjectsPage, error)) (map[string]uint64, error) {
	all, last := map[string]uint64{}, ""
	for offset, back := 0, 1; ; {
		page, err := ask(offset)
		if err != nil {
			return nil, err
		}
		sorted := slices.Sorted(maps.Keys(page.subjects))
		if offset > 0 && (len(sorted) == 0 || sorted[0] > last) {
			offset, back = max(offset-back, 0), 2*back
			continue
		}
		maps.Copy(all, page.subjects)
		end := offset + len(sorted)
		if end >= page.total {
			return all, nil
		}
		if len(sorted) < 2 {
			return nil, fmt.Errorf("jetstream: the server answered with %d of %d subjects", len(sorted), page.total)
		}
		last = max(last, sorted[len(sorted)-1])
		offset, back = end-1, 1
	}
}

// askSubjects requests the page that begins at an offset.
func askSubjects(ctx context.Context, nc *nats.Conn, stream, filter string, offset int) (subjectsPage, error) {
	req, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": offset})
	if err != nil {
		return subjectsPage{}, err
	}
	try, cancel := context.WithTimeout(ctx, LeaderPatience)
	defer cancel()
	m, err := nc.RequestWithContext(try, "$JS.API.STREAM.INFO."+stream, req)
	if err != nil {
		return subjectsPage{}, err
	}
	var body struct {
		Error *natsjs.APIError `json:"error"`
		Total int              `json:"total"`
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := json.Unmarshal(m.Data, &body); err != nil {
		return subjectsPage{}, err
	}
	if body.Error != nil {
		return subjectsPage{}, body.Error
	}
	return subjectsPage{subjects: body.State.Subjects, total: body.Total}, nil
}
