package source

import (
	"fmt"
	"io"

	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// NoteMore writes to w how to see the items after a page.
func NoteMore[T any](w io.Writer, page api.Page[T], offset int) {
	if page.HasMore {
		fmt.Fprintf(w, "%d of %d are shown; --offset %d shows more\n", len(page.Items), page.Total, offset+len(page.Items))
	}
}

// NoteFresh warns on w if read models lack records of the log.
func NoteFresh(w io.Writer, f readmodel.Fresh) {
	switch {
	case f.Rebuilding:
		fmt.Fprintln(w, "not current: the read models are being rebuilt; sessions may be missing")
	case !f.Current:
		fmt.Fprintf(w, "not current: about %d records of the log are not in yet\n", f.Lag)
	}
	if f.Problem != "" {
		fmt.Fprintf(w, "the read models are stuck: %s\n", terminal.Printable(f.Problem))
	}
}
