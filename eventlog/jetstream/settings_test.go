package jetstream_test

import (
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// A stream that was created or changed with other settings is refused at the start, with
// its name and the setting's.
func TestSettingsOfAnExistingStream(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	jetstreamtest.Open(t, nc, nil)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	good := stream.CachedInfo().Config
	for want, change := range map[string]func(*natsjs.StreamConfig){
		"subjects is [x helix.log.0.*], must be [helix.log.0.*]": func(c *natsjs.StreamConfig) { c.Subjects = append([]string{"x"}, c.Subjects...) },
		"storage is Memory, must be File":                        func(c *natsjs.StreamConfig) { c.Storage = natsjs.MemoryStorage },
		"retention is Interest, must be Limits":                  func(c *natsjs.StreamConfig) { c.Retention = natsjs.InterestPolicy },
		"discard is DiscardOld, must be DiscardNew":              func(c *natsjs.StreamConfig) { c.Discard = natsjs.DiscardOld },
		"max_age is 1h0m0s, must be 0s":                          func(c *natsjs.StreamConfig) { c.MaxAge = time.Hour },
		"max_msgs_per_subject is 100, must be":                   func(c *natsjs.StreamConfig) { c.MaxMsgsPerSubject = 100 },
		"no_ack is true, must be false":                          func(c *natsjs.StreamConfig) { c.NoAck, c.AllowAtomicPublish = true, false },
		"persist_mode is Async, must be Default": func(c *natsjs.StreamConfig) {
			c.PersistMode, c.AllowAtomicPublish = natsjs.AsyncPersistMode, false
		},
		"deny_delete is true, must be false":   func(c *natsjs.StreamConfig) { c.DenyDelete = true },
		"deny_purge is true, must be false":    func(c *natsjs.StreamConfig) { c.DenyPurge = true },
		"allow_direct is false, must be true":  func(c *natsjs.StreamConfig) { c.AllowDirect = false },
		"allow_atomic is false, must be true":  func(c *natsjs.StreamConfig) { c.AllowAtomicPublish = false },
		"republish is none, must be {Source:h": func(c *natsjs.StreamConfig) { c.RePublish = nil },
		"republish is {Source:helix.log.0.* Destination:helix.live.{{wildcard(1)}} HeadersOnly:true}, must be": func(c *natsjs.StreamConfig) {
			r := *c.RePublish
			r.HeadersOnly = true
			c.RePublish = &r
		},
		"sources is 1, must be 0": func(c *natsjs.StreamConfig) { c.Sources = []*natsjs.StreamSource{{Name: "OTHER"}} },
		"subject_transform is {Source:helix.log.0.* Destination:helix.log.0.x{{wildcard(1)}}}, must be none": func(c *natsjs.StreamConfig) {
			c.SubjectTransform = &natsjs.SubjectTransformConfig{Source: "helix.log.0.*", Destination: "helix.log.0.x{{wildcard(1)}}"}
		},
	} {
		config := good
		change(&config)
		require.NoError(t, js.DeleteStream(t.Context(), good.Name))
		_, err := js.CreateStream(t.Context(), config)
		require.NoError(t, err, want)
		for _, o := range []*jetstream.Options{nil, {Existing: true}} {
			if o != nil && config.Storage == natsjs.MemoryStorage {
				continue // see TestMemory
			}
			_, err = jetstream.Open(t.Context(), nc, o)
			require.ErrorContains(t, err, "jetstream: stream HELIX_LOG_0: "+want)
		}
		jetstreamtest.Open(t, nc, &jetstream.Options{ReadOnly: true}) // readers need none of the settings
	}
}

// Settings that delete nothing are the operator's.
func TestSettingsOfTheOperator(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	jetstreamtest.Open(t, nc, nil)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.Description, config.MaxBytes, config.MaxMsgs, config.MaxConsumers = "ours", 1<<30, 1, 7
	config.Metadata["owner"] = "ops"
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	log := jetstreamtest.Open(t, nc, nil)
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{logtest.Text("s", "b")})
	require.Error(t, err, "the stream is full")
	require.Len(t, logtest.Records(t, log, "s"), 1, "and keeps what it has")
}

func TestMemory(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	_, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Memory: true, Replicas: 3})
	require.ErrorContains(t, err, "a log in memory has one replica")
	for _, known := range []eventlog.Durability{"", eventlog.DurabilityFsync} {
		log := jetstreamtest.Open(t, nc, &jetstream.Options{Memory: true, Durability: known})
		require.Equal(t, eventlog.DurabilityMemory, log.Info().Durability)
	}
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Existing: true})
	require.Equal(t, eventlog.DurabilityMemory, log.Info().Durability)
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	require.Len(t, logtest.Records(t, log, "s"), 1)
	_, err = jetstream.Open(t.Context(), nc, nil)
	require.ErrorContains(t, err, "jetstream: stream HELIX_LOG_0: storage is Memory, must be File")
}

func TestExistingCreatesNothing(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	_, err := jetstream.Open(t.Context(), nc, &jetstream.Options{Existing: true})
	require.ErrorIs(t, err, natsjs.ErrStreamNotFound)
	jetstreamtest.Open(t, nc, &jetstream.Options{Partitions: 4})
	require.Equal(t, 4, jetstreamtest.Open(t, nc, &jetstream.Options{Existing: true}).Info().Partitions)
}
