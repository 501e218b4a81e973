package doctor

import (
	"context"
	"fmt"
	"strings"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// settings compares the log's streams with the settings that the log needs.
func (x *exam) settings(context.Context) error {
	bad := false
	checked := 0
	for _, w := range x.wants {
		if w.info == nil || !w.log {
			continue
		}
		checked++
		got, wanted := w.info.Config, w.config
		if x.opts.Replicas == 0 {
			wanted.Replicas = got.Replicas
		}
		if err := streams.CheckPartitions(got, wanted); err != nil {
			bad = true
			x.Problem(CheckPartitions, got.Name, strings.TrimPrefix(err.Error(), "jetstream: "),
				fmt.Sprintf("stream %s is not of this log: rename or delete it, or use another account", got.Name))
		}
		err := streams.CheckSettings(got, wanted)
		if err == nil {
			continue
		}
		bad = true
		for line := range strings.Lines(err.Error()) { // one a setting
			text := strings.TrimPrefix(strings.TrimSpace(line), "jetstream: ")
			_, what, _ := strings.Cut(text, ": ")
			setting, _, _ := strings.Cut(what, " is ")
			_, value, _ := strings.Cut(what, ", must be ")
			x.Problem(CheckSettings, got.Name, text, settingAdvice(got, setting, value))
		}
	}
	if !bad && checked > 0 {
		x.OK(CheckSettings, "those of %s are right", streams.Count(checked, "stream"))
	}
	return nil
}

// settingAdvice returns the advice for a wrong setting of a stream.
func settingAdvice(got natsjs.StreamConfig, setting, value string) string {
	switch setting {
	case "storage", "retention", "mirror", "persist_mode", "sealed", "deny_delete", "deny_purge":
		return fmt.Sprintf("%s of stream %s can't be changed: export the sessions (helixd export), delete the stream, let helixd serve create it, import them",
			setting, got.Name)
	case "num_replicas":
		return fmt.Sprintf("set nats.replicas to %d, or the stream's replicas to %s: nats stream edit %s --replicas %s", got.Replicas, value, got.Name, value)
	}
	return fmt.Sprintf("set %s of stream %s to %s: nats stream edit %s", setting, got.Name, value, got.Name)
}
