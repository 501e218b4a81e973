package inspect

import (
	"fmt"
	"io"
	"strconv"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
)

type filesCmd struct {
	listFlags
	Session string `arg:"" type:"session" help:"Session id."`
	Folder  string `arg:"" optional:"" help:"Folder in the workspace; all of it by default."`
}

func (c filesCmd) Run(p *flags.Process) error {
	q := given("path", c.Folder, "limit", strconv.Itoa(c.Limit), "offset", strconv.Itoa(c.Offset))
	return show(p, c.Flags, source.Session(c.Session, "/files"), q, func(w io.Writer, page api.FilesPage) {
		fmt.Fprintln(w, "PATH\tSIZE\tCHANGED")
		for _, f := range page.Items {
			path, size := f.Path, terminal.Bytes(f.Size)
			if f.Folder {
				path, size = f.Path+"/", ""
			}
			terminal.Row(w, path, size, terminal.Clock(f.Modified))
		}
	}, func(page api.FilesPage) {
		source.NoteMore(p.Stderr, page.Page, c.Offset)
		if page.Truncated {
			fmt.Fprintln(p.Stderr, "there are more: name a folder")
		}
	})
}
