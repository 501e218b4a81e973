package doctor

import (
	"fmt"

	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// nodeSubjects are where nodes talk to each other; see package worklist. The first
// is where they answer.
var nodeSubjects = []string{"helix.node.ask.*", "helix.node.agent.*", "helix.node.all", "helix.node.wake"}

// neighbours are the streams that helixd keeps beside those of the log: saved
// folds, and the list of the trees that may have work.
func neighbours(partitions int) (all []doctor.Neighbour) {
	for p := range partitions {
		all = append(all, doctor.Neighbour{
			Name: fmt.Sprintf("HELIX_SNAP_%d", p), Subjects: []string{fmt.Sprintf("helix.snap.%d.>", p)},
			API: []string{"STREAM.UPDATE", "STREAM.MSG.DELETE", "DIRECT.GET", "DIRECT.GET.>"},
		})
	}
	return append(all, doctor.Neighbour{
		Name: worklist.Stream, Subjects: []string{"helix.runs.*.*"},
		API: []string{"STREAM.MSG.GET", "STREAM.MSG.DELETE"},
	})
}

// neighboursOf are those of a configuration: with revoked rights, if embedded
// servers take rights, with what tenants spend, if they have daily limits, and with workspaces in JetStream, if agents have them
// there.
func neighboursOf(c *config.Config) func(partitions int) []doctor.Neighbour {
	return func(partitions int) []doctor.Neighbour {
		all := neighbours(partitions)
		if n := c.NATS; n.URL == "" && settings.HasSubscribers(n) {
			all = append(all, doctor.Neighbour{
				Name: subscriber.RevokedStream, Subjects: []string{subscriber.RevokedSubjects}, API: []string{"STREAM.UPDATE", "STREAM.MSG.GET"},
			})
		}
		if c.DailyLimits() {
			all = append(all, doctor.Neighbour{Name: daily.Stream, Subjects: []string{daily.Subjects}, API: []string{"STREAM.MSG.GET"}})
		}
		for _, a := range c.Agents {
			if w := a.Space(); w != nil && w.Provider == objects.ID {
				return append(all, doctor.Neighbour{
					Name: objects.Stream, Subjects: []string{"helix.work.>", "helix.workgone.*"},
					API: []string{"STREAM.MSG.GET", "STREAM.MSG.DELETE"},
				})
			}
		}
		return all
	}
}
