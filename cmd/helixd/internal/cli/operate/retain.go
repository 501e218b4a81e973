package operate

import (
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
)

type retainCmd struct {
	source.DaemonFlags
	PurgeOlderThan *time.Duration `help:"Remove records from the log that segments hold, if they are older. Readers notice nothing." placeholder:"72h"`
	DropOlderThan  *time.Duration `help:"Remove segments that are older, for good: sessions keep their state, and their history begins later." placeholder:"720h"`
	JSON           bool           `help:"Print JSON."`
	MaxBytes       string         `help:"Remove what is oldest until the log and its segments hold no more. Payloads over 256 KiB don't count, and stay." placeholder:"10GiB"`
}

// Validate makes nothing to do a matter of usage.
func (c retainCmd) Validate() error {
	if c.PurgeOlderThan == nil && c.DropOlderThan == nil && c.MaxBytes == "" {
		return errors.New("--purge-older-than, --drop-older-than or --max-bytes is needed")
	}
	return nil
}

// Run applies retention to all sessions and prints what was removed.
func (c retainCmd) Run(p *flags.Process) error {
	want := map[string]any{}
	if c.MaxBytes != "" {
		n, ok := config.ParseBytes(c.MaxBytes)
		if !ok || n == 0 {
			return fmt.Errorf("--max-bytes: %q is no amount of bytes such as 10GiB", c.MaxBytes)
		}
		want["maxBytes"] = int64(n)
	}
	for name, d := range map[string]*time.Duration{"purgeOlderThan": c.PurgeOlderThan, "dropOlderThan": c.DropOlderThan} {
		if d != nil {
			want[name] = d.String()
		}
	}
	answer, err := c.Connect().Post(p.Ctx, "/retention", want)
	if err != nil {
		return err
	}
	return source.Show(p, c.JSON, answer, func(done api.Retained) error {
		var purged uint64
		for _, part := range done.Purged {
			purged += part.Records
		}
		_, err := fmt.Fprintf(p.Stdout, "%s removed from the log; %s have a shorter history; the log and its segments hold %s\n",
			terminal.Count(int(purged), "record"), terminal.Count(len(done.Dropped), "session"), terminal.Bytes(int64(done.Bytes)))
		return err
	})
}
