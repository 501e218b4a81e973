package operate

import (
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
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
	want := client.Retention{PurgeOlderThan: c.PurgeOlderThan, DropOlderThan: c.DropOlderThan}
	if c.MaxBytes != "" {
		n, ok := config.ParseBytes(c.MaxBytes)
		if !ok || n == 0 {
			return fmt.Errorf("--max-bytes: %q is no amount of bytes such as 10GiB", c.MaxBytes)
		}
		want.MaxBytes = new(uint64(n))
	}
	done, err := c.Connect().Retain(p.Ctx, want)
	if err != nil {
		return source.Explained(err)
	}
	var purged uint64
	for _, part := range done.Purged {
		purged += part.Records
	}
	words := fmt.Sprintf("%s removed from the log; %s have a shorter history; the log and its segments hold %s",
		terminal.Count(int(purged), "record"), terminal.Count(len(done.Dropped), "session"), terminal.Bytes(int64(done.Bytes)))
	return terminal.Result(p.Stdout, c.JSON, done, words)
}
