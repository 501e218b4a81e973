package operate

import (
	"fmt"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/snapshot/backup"
)

// grownTo is what the command prints.
type grownTo struct {
	From    string `json:"from"`
	Cluster string `json:"cluster"`
	backup.Summary
	Working int `json:"working"`
	// Copied and Compared say how long nodes could not serve.
	Copied   time.Duration `json:"copiedNs"`
	Compared time.Duration `json:"comparedNs"`
}

func (g grownTo) words() string {
	return terminal.Printable(fmt.Sprintf("%s, %s, %s of content are in cluster %s, and compared with %s; copied in %s, compared in %s; daemons continue %d. "+
		"Start this node with helixd serve. %[5]s can be removed when you have a backup of the cluster",
		terminal.Count(g.Sessions, "session"), terminal.Count(g.Records, "record"), terminal.Bytes(g.Bytes), g.Cluster, g.From,
		g.Copied.Round(time.Millisecond), g.Compared.Round(time.Millisecond), g.Working))
}

// notGrown is what the command prints if it succeeds without copying.
type notGrown struct {
	From      string `json:"from"`
	Cluster   string `json:"cluster"`
	Already   bool   `json:"already,omitempty"` // the cluster has the data
	Cancelled bool   `json:"cancelled,omitempty"`
}
